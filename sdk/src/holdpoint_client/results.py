"""What the server's answers mean, typed. Every result keeps the whole document as `data`."""

import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import Any

from holdpoint_client.errors import LeaseLost, Refused, refusal
from holdpoint_client.exchange import Reply
from holdpoint_client.problem import Problem, problem_parse

Json = dict[str, Any]


class State(StrEnum):
    RECEIVED = "received"
    DEDUPLICATED = "deduplicated"
    DENIED = "preflight-denied"
    HELD = "review-required"
    APPROVED = "approved-for-execution"
    COMPLETED = "completed"
    QUARANTINED = "failed-quarantined"


ENDS = frozenset({State.DENIED, State.COMPLETED, State.QUARANTINED})


@dataclass(frozen=True, slots=True)
class Action:
    """What is proposed, by reference and hash, never the content."""

    operation: str
    target_ref: str
    risk_tier: str = "low"
    connector: str | None = None
    payload_ref: str | None = None
    payload_sha256: str | None = None
    fields: tuple[str, ...] = ()

    def as_json(self) -> Json:
        given: Json = {"operation": self.operation, "target_ref": self.target_ref, "risk_tier": self.risk_tier}
        more = {"connector": self.connector, "payload_ref": self.payload_ref, "payload_sha256": self.payload_sha256}
        given |= {name: value for name, value in more.items() if value is not None}
        return given | ({"fields": list(self.fields)} if self.fields else {})


@dataclass(frozen=True, slots=True)
class Review:
    id: str
    tier: str
    approvals_required: int
    expires_at: datetime | None


@dataclass(frozen=True, slots=True)
class Attempt:
    id: str
    state: str
    reason_code: str | None
    review: Review | None
    data: Mapping[str, Any] = field(repr=False)

    @property
    def decided(self) -> bool:
        """Nobody has to release it any more."""
        return self.state not in {State.RECEIVED, State.DEDUPLICATED, State.HELD}

    @property
    def ended(self) -> bool:
        return self.state in ENDS

    @property
    def outcome_unknown(self) -> bool:
        return self.state == State.QUARANTINED and self.reason_code == "outcome_unknown"


@dataclass(frozen=True, slots=True)
class _Asked:
    """`key` is the idempotency key; `replayed`: this key was known, and nothing new was made."""

    attempt: Attempt
    key: str
    replayed: bool


@dataclass(frozen=True, slots=True)
class Allowed(_Asked):
    """Released for execution. In mode `client_driven` lease it before you act."""


@dataclass(frozen=True, slots=True)
class Held(_Asked):
    """Waits for people: `attempt.review` says which, `wait()` waits."""


@dataclass(frozen=True, slots=True)
class Completed(_Asked):
    """It was asked before under this key, and is done."""


@dataclass(frozen=True, slots=True)
class Quarantined(_Asked):
    """It was asked before under this key, and failed or is unknown. Only a person takes it from here."""


@dataclass(frozen=True, slots=True)
class Denied(_Asked):
    """Denied, and on record. `problem` is set when the denial was the answer itself."""

    problem: Problem | None = None

    @property
    def reason_code(self) -> str | None:
        return self.attempt.reason_code


Answer = Allowed | Held | Completed | Quarantined | Denied
BY_STATE: dict[str, type[Allowed] | type[Held] | type[Completed] | type[Quarantined] | type[Denied]] = {
    State.APPROVED: Allowed,
    State.HELD: Held,
    State.COMPLETED: Completed,
    State.QUARANTINED: Quarantined,
    State.DENIED: Denied,
}


@dataclass(slots=True)
class Lease:
    """The right to act once. Send `effect_key` on as the idempotency key of what you call."""

    attempt: Attempt
    token: str = field(repr=False)
    effect_key: str
    lifetime: float
    _lost: threading.Event = field(default_factory=threading.Event, repr=False)

    @property
    def lost(self) -> bool:
        return self._lost.is_set()

    def lose(self) -> None:
        self._lost.set()

    def check(self) -> None:
        """Call it between the parts of a long piece of work: raises once the lease is lost."""
        if self.lost:
            raise LeaseLost(Problem(409, code="lease-lost", detail="The lease was lost while the work was under way."))


@dataclass(frozen=True, slots=True)
class Reported:
    """What became of an attempt by a report; `next_eligible_at`: it is tried again then."""

    state: str
    reason_code: str | None
    tries: int
    next_eligible_at: datetime | None


def read_json(reply: Reply) -> Json:
    """The body of a success; everything else is raised."""
    if not reply.ok:
        raise refusal(problem_parse(reply.status, reply.headers, reply.body), reply.asked)
    try:
        found = json.loads(reply.body) if reply.body else {}
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise strange(reply.status)
    return found


def strange(status: int) -> Refused:
    return Refused(Problem(status, detail="The answer is not what Holdpoint's API says: is this its address?"))


def read_moment(text: Any) -> datetime | None:
    return datetime.fromisoformat(text) if isinstance(text, str) else None


def read_attempt(data: Json) -> Attempt:
    review = data.get("review")
    return Attempt(
        id=str(data["id"]),
        state=str(data["state"]),
        reason_code=data.get("reason_code") or None,
        review=_review(review) if review else None,
        data=data,
    )


def _review(data: Json) -> Review:
    return Review(
        str(data["id"]), str(data["tier"]), int(data["approvals_required"]), read_moment(data.get("expires_at"))
    )


def read_answer(reply: Reply, key: str) -> Answer:
    """By the state that the attempt has now: a repeated key answers with the first body, and tells the state apart."""
    replayed = reply.headers.get("idempotent-replayed") == "true"
    problem = None if reply.ok else problem_parse(reply.status, reply.headers, reply.body)
    if problem is not None and problem.code != "attempt-denied":
        raise refusal(problem, reply.asked)
    if problem is not None:
        facts = {"id": str(problem.more.get("attempt_id", "")), "state": State.DENIED.value}
        attempt = read_attempt({**problem.more, **facts, "reason_code": problem.reason_code})
        return Denied(attempt, key, replayed, problem)
    first = read_attempt(read_json(reply))
    now = reply.headers.get("attempt-state", first.state) if replayed else first.state
    reason = first.reason_code if now == first.state else None
    attempt = Attempt(first.id, now, reason, first.review if now == State.HELD else None, first.data)
    return BY_STATE.get(now, Held)(attempt, key, replayed)


def read_lease(data: Json, headers: Mapping[str, str]) -> Lease:
    return Lease(
        attempt=read_attempt(data["attempt"]),
        token=str(data["lease_token"]),
        effect_key=str(data["effect_key"]),
        lifetime=_lifetime(read_moment(data["lease_expires_at"]), headers),
    )


def _lifetime(ends: datetime | None, headers: Mapping[str, str]) -> float:
    """Seconds from the answer on, by the server's own clock: ours may be wrong."""
    try:
        left = (ends - parsedate_to_datetime(headers["date"])).total_seconds() if ends else 0.0
    except (KeyError, ValueError, TypeError):
        left = 0.0
    return left if 1.0 <= left <= 3600.0 else 30.0


def read_reported(data: Json) -> Reported:
    return Reported(
        str(data["state"]), data.get("reason_code"), int(data["tries"]), read_moment(data.get("next_eligible_at"))
    )
