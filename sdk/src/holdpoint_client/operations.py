"""Each operation of the API: its request and the reading of its answer. Both clients run these and add nothing."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar
from urllib.parse import quote

from holdpoint_client.exchange import Call, Repeat, Reply
from holdpoint_client.results import (
    Action,
    Answer,
    Attempt,
    Json,
    Lease,
    Reported,
    read_answer,
    read_attempt,
    read_json,
    read_lease,
    read_reported,
    strange,
)

T = TypeVar("T")
Mode = Literal["active", "client_driven", "shadow"]
LONGEST_WAIT = 25  # seconds: the server sleeps for 30 at most, and proxies often end a request after 30


@dataclass(frozen=True, slots=True)
class Operation(Generic[T]):
    call: Call
    read: Callable[[Reply], T]

    def result(self, reply: Reply) -> T:
        """A success that is not what the API says is no success: somebody else answered."""
        try:
            return self.read(reply)
        except (KeyError, TypeError, ValueError) as error:
            raise strange(reply.status) from error


@dataclass(frozen=True, slots=True)
class Proposal:
    """A request for permission in its final bytes."""

    contract: str
    version: int
    body: bytes
    timeline: bool = False

    @property
    def path(self) -> str:
        return f"/execution/{quote(self.contract, safe='')}/{self.version}/attempts"

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.body).hexdigest()


def encode(document: Any) -> bytes:
    """The same document always gives the same bytes."""
    return json.dumps(document, separators=(",", ":"), sort_keys=True, allow_nan=False).encode()


def propose(
    contract: str,
    version: int,
    *,
    action: Action | Mapping[str, Any],
    metadata: Mapping[str, Any] | None,
    patient_context_ref: str | None,
    mode: Mode,
    timeline: bool,
) -> Proposal:
    document: Json = {"action": action.as_json() if isinstance(action, Action) else dict(action), "runtime_mode": mode}
    if metadata is not None:
        document["metadata"] = dict(metadata)
    if patient_context_ref is not None:
        document["patient_context_ref"] = patient_context_ref
    return Proposal(contract, version, encode(document), timeline)


def attempt_create(proposal: Proposal, key: str) -> Operation[Answer]:
    """Where every call is a new attempt (`timeline`) a repetition is not recognised, so a lost answer stays lost."""
    repeat = Repeat.UNSENT if proposal.timeline else Repeat.SAFE
    call = _post(proposal.path, proposal.body, repeat=repeat, headers=(("Idempotency-Key", key),))
    return Operation(call, lambda reply: read_answer(reply, key))


def attempt_replay(attempt_id: str, key: str) -> Operation[Answer]:
    call = _post(f"/attempts/{_id(attempt_id)}/replay", None, repeat=Repeat.SAFE, headers=(("Idempotency-Key", key),))
    return Operation(call, lambda reply: read_answer(reply, key))


def attempt_read(attempt_id: str, *, wait: int = 0) -> Operation[tuple[Attempt, bool]]:
    """The attempt, and whether the server slept as it was asked to."""
    headers = (("Prefer", f"wait={wait}"),) if wait else ()
    call = Call(
        method="GET",
        path=f"/attempts/{_id(attempt_id)}",
        headers=headers,
        repeat=Repeat.SAFE,
        seconds=15.0 + wait,
    )
    return Operation(call, lambda reply: (read_attempt(read_json(reply)), "preference-applied" in reply.headers))


def attempt_cancel(attempt_id: str) -> Operation[Attempt]:
    call = _post(f"/attempts/{_id(attempt_id)}/cancel", None, repeat=Repeat.UNSENT)
    return Operation(call, lambda reply: read_attempt(read_json(reply)))


def lease_one(attempt_id: str) -> Operation[Lease]:
    """Never repeated once it may have arrived: a lease whose token got lost cannot be had again."""
    call = _post(f"/attempts/{_id(attempt_id)}/lease", b"{}", repeat=Repeat.UNSENT, executes=True)
    return Operation(call, lambda reply: read_lease(read_json(reply), reply.headers))


def lease_many(connector: str | None, limit: int) -> Operation[list[Lease]]:
    document: Json = {"limit": limit} | ({"connector": connector} if connector else {})
    call = _post("/attempts/lease", encode(document), repeat=Repeat.UNSENT, executes=True)
    return Operation(call, lambda reply: [read_lease(row, reply.headers) for row in read_json(reply)["results"]])


def heartbeat(lease: Lease) -> Operation[Json]:
    return Operation(_report(lease, "heartbeat", {}), read_json)


def complete(
    lease: Lease,
    *,
    response_metadata: Mapping[str, Any] | None,
    cost: Mapping[str, Any] | None,
    reversible: bool,
    reversal_hint: str,
) -> Operation[Reported]:
    document: Json = {"response_metadata": dict(response_metadata or {})}
    if cost is not None:
        document["cost"] = dict(cost)
    if reversible:
        document |= {"reversible": True, "reversal_hint": reversal_hint}
    return Operation(_report(lease, "complete", document), lambda reply: read_reported(read_json(reply)))


def fail(lease: Lease, *, category: str, retryable: bool, reason_code: str) -> Operation[Reported]:
    document = {"category": category, "retryable": retryable, "reason_code": reason_code}
    return Operation(_report(lease, "fail", document), lambda reply: read_reported(read_json(reply)))


def event_send(envelope: Mapping[str, Any]) -> Operation[Json]:
    """The server recognises an `event_id` that it has."""
    return Operation(_post("/events", encode(dict(envelope)), repeat=Repeat.SAFE), read_json)


def read_operation(path: str, params: Mapping[str, Any] | None = None, *, read: Callable[[Reply], T]) -> Operation[T]:
    given = tuple((name, str(value)) for name, value in (params or {}).items() if value is not None)
    return Operation(Call(method="GET", path=path, params=given, repeat=Repeat.SAFE), read)


def post(path: str, document: Mapping[str, Any] | None = None) -> Operation[Json]:
    """Any other act. Repeated only while nothing was done with it."""
    return Operation(_post(path, None if document is None else encode(dict(document)), repeat=Repeat.UNSENT), read_json)


def read_any(reply: Reply) -> Any:
    """Lists too."""
    if not reply.ok or not reply.body.lstrip().startswith(b"["):
        return read_json(reply)
    return json.loads(reply.body)


def _report(lease: Lease, verb: str, document: Json) -> Call:
    """A report that is made twice is answered twice and recorded once."""
    path = f"/attempts/{_id(lease.attempt.id)}/{verb}"
    return _post(path, encode(document | {"lease_token": lease.token}), repeat=Repeat.SAFE, executes=True)


def _post(
    path: str,
    body: bytes | None,
    *,
    repeat: Repeat,
    headers: Sequence[tuple[str, str]] = (),
    executes: bool = False,
) -> Call:
    kind = (("Content-Type", "application/json"),) if body is not None else ()
    return Call(method="POST", path=path, headers=(*headers, *kind), body=body, repeat=repeat, executes=executes)


def _id(value: str) -> str:
    return quote(str(value), safe="")
