"""Keeps a lease alive while the work goes on, and notices when it is lost."""

import asyncio
import logging
import threading
import time
from contextlib import suppress
from types import TracebackType
from typing import Self

from holdpoint_client.async_client import AsyncHoldpoint
from holdpoint_client.client import Holdpoint
from holdpoint_client.errors import HoldpointError, LeaseLost
from holdpoint_client.results import Lease

log = logging.getLogger("holdpoint_client")


class Pulse:
    """Pure: when to beat, and when silence means that the lease is over. Three beats fit into a lifetime."""

    def __init__(self, lifetime: float, *, now: float) -> None:
        self.lifetime = lifetime
        self.interval = lifetime / 3
        self.alive_until = now + lifetime

    def heard(self, *, began: float) -> None:
        """Counted from when the beat was sent: the server extended it later than that, never earlier."""
        self.alive_until = began + self.lifetime

    def over(self, *, now: float) -> bool:
        return now >= self.alive_until


class Heart:
    """A thread that beats between `with` and its end."""

    def __init__(self, client: Holdpoint, lease: Lease) -> None:
        self.client, self.lease = client, lease
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="holdpoint-heartbeat", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _beat(self) -> None:
        pulse = Pulse(self.lease.lifetime, now=time.monotonic())
        while not self._stop.wait(pulse.interval):
            began = time.monotonic()
            try:
                self.client.heartbeat(self.lease, deadline=pulse.interval / 2)
                pulse.heard(began=began)
            except LeaseLost:
                self.lease.lose()
            except HoldpointError as error:
                log.warning("heartbeat of attempt %s not taken: %s", self.lease.attempt.id, type(error).__name__)
            if self.lease.lost or pulse.over(now=time.monotonic()):
                self.lease.lose()
                return


class AsyncHeart:
    """A task that beats between `async with` and its end; `task` ends by itself only when the lease is lost.

    It is stopped, not cancelled: a beat that arrived after the report would count as one under a stale lease.
    """

    def __init__(self, client: AsyncHoldpoint, lease: Lease) -> None:
        self.client, self.lease = client, lease
        self._stop = asyncio.Event()

    async def __aenter__(self) -> Self:
        self.task = asyncio.create_task(self._beat())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        await asyncio.wait({self.task})

    async def _stopped(self, seconds: float) -> bool:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._stop.wait(), seconds)
        return self._stop.is_set()

    async def _beat(self) -> None:
        pulse = Pulse(self.lease.lifetime, now=time.monotonic())
        while not await self._stopped(pulse.interval):
            began = time.monotonic()
            try:
                await self.client.heartbeat(self.lease, deadline=pulse.interval / 2)
                pulse.heard(began=began)
            except LeaseLost:
                self.lease.lose()
            except HoldpointError as error:
                log.warning("heartbeat of attempt %s not taken: %s", self.lease.attempt.id, type(error).__name__)
            if self.lease.lost or pulse.over(now=time.monotonic()):
                self.lease.lose()
                return
