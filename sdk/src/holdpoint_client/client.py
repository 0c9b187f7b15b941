"""The client for programs with threads. Each method is one operation; tries, pauses and limits are `exchange`'s."""

import random
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx

from holdpoint_client import operations as ops
from holdpoint_client.errors import SettingMissing
from holdpoint_client.exchange import Done, Exchange, GaveUp, Lost, Reply, Send
from holdpoint_client.keys import KeyStore, SQLiteKeyStore
from holdpoint_client.operations import Mode, Operation
from holdpoint_client.results import Action, Answer, Attempt, Json, Lease, Reported, read_json
from holdpoint_client.retry import RetryPolicy
from holdpoint_client.settings import settings_from
from holdpoint_client.transport import LIMITS, lost_from, reply_from, request_parts
from holdpoint_client.waiting import Until, Waiting

T = TypeVar("T")
PATIENT = 10**6  # tries: the deadline alone ends it


class Holdpoint:
    """`url` and `key` come from HOLDPOINT_URL and HOLDPOINT_KEY if not given; `executor_key` is for the operations that
    need `attempts:execute`, if that is another key."""

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        executor_key: str | None = None,
        store: KeyStore | None = None,
        retry: RetryPolicy | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self.settings = settings_from(url, key, executor_key)
        self.retry = retry or RetryPolicy()
        self._store = store
        self._http = httpx.Client(limits=LIMITS, transport=transport)

    @property
    def store(self) -> KeyStore:
        """Made on first use: reading needs none."""
        if self._store is None:
            self._store = SQLiteKeyStore()
        return self._store

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    # --- asking

    def attempt(
        self,
        contract: str,
        version: int = 1,
        *,
        action: Action | Mapping[str, Any],
        ref: str | None = None,
        key: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        patient_context_ref: str | None = None,
        mode: Mode = "active",
        timeline: bool = False,
        deadline: float | None = None,
    ) -> Answer:
        """Asks for permission. `ref` is your own name for this one side effect: its key is stored before anything is
        sent, and whoever asks again under it, also after a crash, asks about the same attempt. Or bring a `key` that
        you store yourself. `timeline=True` for contracts where every call is a new attempt."""
        proposal = ops.propose(
            contract,
            version,
            action=action,
            metadata=metadata,
            patient_context_ref=patient_context_ref,
            mode=mode,
            timeline=timeline,
        )
        name = store_name(self.settings.url, proposal.path, ref, key)
        used = key or self.store.reserve(name, proposal.sha256).key
        answer = self.run(ops.attempt_create(proposal, used), deadline=deadline)
        if ref is not None:
            self.store.answered(name, answer.attempt.id)
        return answer

    def get(self, attempt_id: str) -> Attempt:
        return self.run(ops.attempt_read(attempt_id))[0]

    def wait(
        self,
        attempt_id: str,
        *,
        until: Until = "decision",
        timeout: float = 300.0,
        cancel: threading.Event | None = None,
    ) -> Attempt:
        """Until somebody decided, or it ended. StillWaiting after `timeout` seconds, or once `cancel` is set."""
        waiting = Waiting(until=until, seconds=timeout, now=time.monotonic(), cancellable=cancel is not None)
        while True:
            now = time.monotonic()
            patience = replace(self.retry, deadline=waiting.left(now) + 1.0, most_tries=PATIENT)
            attempt, slept = self.run(ops.attempt_read(attempt_id, wait=waiting.ask(now)), policy=patience)
            cancelled = cancel is not None and cancel.is_set()
            pause = waiting.heard(attempt, slept=slept, now=time.monotonic(), cancelled=cancelled)
            if pause is None:
                return attempt
            (cancel.wait if cancel is not None else time.sleep)(pause)

    def cancel(self, attempt_id: str) -> Attempt:
        return self.run(ops.attempt_cancel(attempt_id))

    def replay(self, attempt_id: str, *, ref: str | None = None, key: str | None = None) -> Answer:
        """A new attempt with the same content, where its contract allows that. Once per `ref`."""
        ref = ref if key is not None else ref or "once"
        name = store_name(self.settings.url, f"/attempts/{attempt_id}/replay", ref, key)
        used = key or self.store.reserve(name, "").key
        answer = self.run(ops.attempt_replay(attempt_id, used))
        if key is None:
            self.store.answered(name, answer.attempt.id)
        return answer

    # --- executing

    def lease(self, attempt_id: str) -> Lease:
        """From here on the outcome counts as unknown until you report. NotLeasable: do not act."""
        return self.run(ops.lease_one(attempt_id))

    def lease_many(self, *, connector: str | None = None, limit: int = 1) -> list[Lease]:
        return self.run(ops.lease_many(connector, limit))

    def heartbeat(self, lease: Lease, *, deadline: float | None = None) -> Json:
        return self.run(ops.heartbeat(lease), deadline=deadline)

    def complete(
        self,
        lease: Lease,
        *,
        response_metadata: Mapping[str, Any] | None = None,
        cost: Mapping[str, Any] | None = None,
        reversible: bool = False,
        reversal_hint: str = "",
    ) -> Reported:
        return self.run(
            ops.complete(
                lease,
                response_metadata=response_metadata,
                cost=cost,
                reversible=reversible,
                reversal_hint=reversal_hint,
            )
        )

    def fail(
        self,
        lease: Lease,
        *,
        category: str = "adapter_failure",
        retryable: bool = False,
        reason_code: str = "adapter_failed",
    ) -> Reported:
        """It was not done. With the category `outcome_unknown` nobody knows, and a person has to find out."""
        return self.run(ops.fail(lease, category=category, retryable=retryable, reason_code=reason_code))

    # --- everything else

    def send_event(self, envelope: Mapping[str, Any]) -> Json:
        return self.run(ops.event_send(envelope))

    def read(self, path: str, **params: Any) -> Any:
        """GET of any path under /api/v1."""
        return self.run(ops.read_operation(path, params, read=ops.read_any))

    def act(self, path: str, document: Mapping[str, Any] | None = None) -> Json:
        """POST to any path under /api/v1. It is not repeated once it may have arrived."""
        return self.run(ops.post(path, document))

    def rows(self, path: str, *, most: int | None = None, **params: Any) -> Iterator[Json]:
        """The rows of a list, page by page."""
        seen, page = 0, {"page_size": min(200, most) if most else None, **params}
        while True:
            found = self.run(ops.read_operation(path, page, read=read_json))
            for row in found["results"]:
                yield row
                seen += 1
                if most is not None and seen >= most:
                    return
            following = httpx.URL(found["next"]) if found.get("next") else None
            if following is None:
                return
            page = dict(following.params)

    def run(self, operation: Operation[T], *, policy: RetryPolicy | None = None, deadline: float | None = None) -> T:
        policy = policy or self.retry
        policy = policy if deadline is None else replace(policy, deadline=deadline)
        exchange = Exchange(operation.call, policy, now=time.monotonic(), dice=random.random)
        while True:
            heard = self._send(exchange.send(now=time.monotonic()))
            step = exchange.heard(heard, now=time.monotonic())
            if isinstance(step, Done):
                return operation.result(step.reply)
            if isinstance(step, GaveUp):
                raise step.error
            time.sleep(step.seconds)

    def _send(self, send: Send) -> Reply | Lost:
        try:
            return reply_from(self._http.request(**request_parts(self.settings, send)))
        except httpx.RequestError as error:
            return lost_from(error)


def store_name(url: str, path: str, ref: str | None, key: str | None) -> str:
    if (ref is None) == (key is None):
        raise SettingMissing("give either a ref, which names this one side effect, or a key that you store yourself")
    return f"{url}{path}#{ref}"
