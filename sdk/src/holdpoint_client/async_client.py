"""The client for programs with an event loop. The same operations as `client`; only the waiting is another."""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx

from holdpoint_client import operations as ops
from holdpoint_client.client import PATIENT, store_name
from holdpoint_client.exchange import Done, Exchange, GaveUp, Lost, Reply, Send
from holdpoint_client.keys import KeyStore, SQLiteKeyStore
from holdpoint_client.operations import Mode, Operation
from holdpoint_client.results import Action, Answer, Attempt, Json, Lease, Reported, read_json
from holdpoint_client.retry import RetryPolicy
from holdpoint_client.settings import settings_from
from holdpoint_client.transport import LIMITS, lost_from, reply_from, request_parts
from holdpoint_client.waiting import Until, Waiting

T = TypeVar("T")


class AsyncHoldpoint:
    """As `Holdpoint`. A task that is cancelled stops waiting at once; what it has sent stays sent, under its key."""

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        executor_key: str | None = None,
        store: KeyStore | None = None,
        retry: RetryPolicy | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.settings = settings_from(url, key, executor_key)
        self.retry = retry or RetryPolicy()
        self._store = store
        self._http = httpx.AsyncClient(limits=LIMITS, transport=transport)

    @property
    def store(self) -> KeyStore:
        if self._store is None:
            self._store = SQLiteKeyStore()
        return self._store

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        await self._http.aclose()

    async def attempt(
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
        """See `Holdpoint.attempt`. The key is on the disk before anything is sent, here too."""
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
        used = key or (await asyncio.to_thread(self.store.reserve, name, proposal.sha256)).key
        answer = await self.run(ops.attempt_create(proposal, used), deadline=deadline)
        if ref is not None:
            await asyncio.to_thread(self.store.answered, name, answer.attempt.id)
        return answer

    async def get(self, attempt_id: str) -> Attempt:
        return (await self.run(ops.attempt_read(attempt_id)))[0]

    async def wait(self, attempt_id: str, *, until: Until = "decision", timeout: float = 300.0) -> Attempt:
        """Until somebody decided, or it ended. StillWaiting after `timeout` seconds; cancel the task to stop before."""
        waiting = Waiting(until=until, seconds=timeout, now=time.monotonic())
        while True:
            now = time.monotonic()
            patience = replace(self.retry, deadline=waiting.left(now) + 1.0, most_tries=PATIENT)
            attempt, slept = await self.run(ops.attempt_read(attempt_id, wait=waiting.ask(now)), policy=patience)
            pause = waiting.heard(attempt, slept=slept, now=time.monotonic())
            if pause is None:
                return attempt
            await asyncio.sleep(pause)

    async def cancel(self, attempt_id: str) -> Attempt:
        return await self.run(ops.attempt_cancel(attempt_id))

    async def replay(self, attempt_id: str, *, ref: str | None = None, key: str | None = None) -> Answer:
        ref = ref if key is not None else ref or "once"
        name = store_name(self.settings.url, f"/attempts/{attempt_id}/replay", ref, key)
        used = key or (await asyncio.to_thread(self.store.reserve, name, "")).key
        answer = await self.run(ops.attempt_replay(attempt_id, used))
        if key is None:
            await asyncio.to_thread(self.store.answered, name, answer.attempt.id)
        return answer

    async def lease(self, attempt_id: str) -> Lease:
        return await self.run(ops.lease_one(attempt_id))

    async def lease_many(self, *, connector: str | None = None, limit: int = 1) -> list[Lease]:
        return await self.run(ops.lease_many(connector, limit))

    async def heartbeat(self, lease: Lease, *, deadline: float | None = None) -> Json:
        return await self.run(ops.heartbeat(lease), deadline=deadline)

    async def complete(
        self,
        lease: Lease,
        *,
        response_metadata: Mapping[str, Any] | None = None,
        cost: Mapping[str, Any] | None = None,
        reversible: bool = False,
        reversal_hint: str = "",
    ) -> Reported:
        return await self.run(
            ops.complete(
                lease,
                response_metadata=response_metadata,
                cost=cost,
                reversible=reversible,
                reversal_hint=reversal_hint,
            )
        )

    async def fail(
        self,
        lease: Lease,
        *,
        category: str = "adapter_failure",
        retryable: bool = False,
        reason_code: str = "adapter_failed",
    ) -> Reported:
        return await self.run(ops.fail(lease, category=category, retryable=retryable, reason_code=reason_code))

    async def send_event(self, envelope: Mapping[str, Any]) -> Json:
        return await self.run(ops.event_send(envelope))

    async def read(self, path: str, **params: Any) -> Any:
        return await self.run(ops.read_operation(path, params, read=ops.read_any))

    async def act(self, path: str, document: Mapping[str, Any] | None = None) -> Json:
        return await self.run(ops.post(path, document))

    async def rows(self, path: str, **params: Any) -> AsyncIterator[Json]:
        page = dict(params)
        while True:
            found = await self.run(ops.read_operation(path, page, read=read_json))
            for row in found["results"]:
                yield row
            if not found.get("next"):
                return
            page = dict(httpx.URL(found["next"]).params)

    async def run(
        self, operation: Operation[T], *, policy: RetryPolicy | None = None, deadline: float | None = None
    ) -> T:
        policy = policy or self.retry
        policy = policy if deadline is None else replace(policy, deadline=deadline)
        exchange = Exchange(operation.call, policy, now=time.monotonic(), dice=random.random)
        while True:
            heard = await self._send(exchange.send(now=time.monotonic()))
            step = exchange.heard(heard, now=time.monotonic())
            if isinstance(step, Done):
                return operation.result(step.reply)
            if isinstance(step, GaveUp):
                raise step.error
            await asyncio.sleep(step.seconds)

    async def _send(self, send: Send) -> Reply | Lost:
        try:
            return reply_from(await self._http.request(**request_parts(self.settings, send)))
        except httpx.RequestError as error:
            return lost_from(error)
