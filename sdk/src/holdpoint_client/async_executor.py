"""The executor for an event loop: several pieces of work at once, and a handler is cancelled when its lease is lost."""

import asyncio
import logging
import signal
from collections.abc import Awaitable, Callable
from contextlib import suppress

from holdpoint_client.async_client import AsyncHoldpoint
from holdpoint_client.errors import HoldpointError, LeaseLost, TryLater, Unreachable
from holdpoint_client.handling import Failure, Returned, Success, failure_of, success_of
from holdpoint_client.heart import AsyncHeart
from holdpoint_client.reporting import report_async
from holdpoint_client.results import Lease

log = logging.getLogger("holdpoint_client")
AsyncHandler = Callable[[Lease], Awaitable[Returned]]
SIGNALS = (signal.SIGTERM, signal.SIGINT)


class AsyncExecutor:
    """`grace`: how long work may go on after `stop`; then it is cancelled, and its outcome counts as unknown."""

    def __init__(
        self,
        client: AsyncHoldpoint,
        handler: AsyncHandler,
        *,
        connector: str | None = None,
        concurrency: int = 1,
        poll: tuple[float, float] = (0.5, 5.0),
        grace: float = 30.0,
    ) -> None:
        self.client, self.handler, self.connector = client, handler, connector
        self.concurrency, self.poll, self.grace = concurrency, poll, grace
        self.done = 0
        self._stop = asyncio.Event()

    def stop(self) -> None:
        self._stop.set()

    async def run(self) -> None:
        """Until `stop`, SIGTERM or SIGINT."""
        loop = asyncio.get_running_loop()
        with suppress(NotImplementedError, RuntimeError, ValueError):  # not in the main thread, or not on this system
            for number in SIGNALS:
                loop.add_signal_handler(number, self.stop)
        workers = [asyncio.create_task(self._take_all()) for _ in range(self.concurrency)]
        try:
            stopped = asyncio.create_task(self._stop.wait())
            await asyncio.wait({stopped, *workers}, return_when=asyncio.FIRST_COMPLETED)
            self.stop()
            await asyncio.wait(workers, timeout=self.grace)
        finally:
            for worker in workers:
                worker.cancel()
            ended = await asyncio.gather(*workers, return_exceptions=True)
            with suppress(NotImplementedError, RuntimeError, ValueError):
                for number in SIGNALS:
                    loop.remove_signal_handler(number)
        for error in ended:
            if isinstance(error, Exception):
                raise error

    async def _take_all(self) -> None:
        idle = self.poll[0]
        while not self._stop.is_set():
            if await self.run_once():
                idle = self.poll[0]
                continue
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stop.wait(), idle)
            idle = min(self.poll[1], idle * 2)

    async def run_once(self) -> bool:
        try:
            leases = await self.client.lease_many(connector=self.connector, limit=1)
        except (Unreachable, TryLater) as error:
            log.warning("nothing leased: %s", error)
            return False
        for lease in leases:
            await self._work(lease)
        return bool(leases)

    async def _work(self, lease: Lease) -> None:
        """The handler is cancelled when its lease is lost, or when the process has to end."""
        work = asyncio.ensure_future(self.handler(lease))
        try:
            async with AsyncHeart(self.client, lease) as heart:
                await asyncio.wait({work, heart.task}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await self._end(work, lease)

    async def _end(self, work: "asyncio.Future[Returned]", lease: Lease) -> None:
        if not work.done():
            work.cancel()
        (returned,) = await asyncio.gather(work, return_exceptions=True)
        end: Success | Failure
        if isinstance(returned, BaseException):
            log.warning("handler of attempt %s raised %s", lease.attempt.id, type(returned).__name__)
            end = failure_of(returned)
        else:
            end = success_of(returned)
        await self._report(lease, end)

    async def _report(self, lease: Lease, end: Success | Failure) -> None:
        try:
            await asyncio.shield(report_async(self.client, lease, end))
            self.done += 1
        except LeaseLost:
            log.warning("the lease of attempt %s was lost; the report is kept as late evidence", lease.attempt.id)
        except HoldpointError as error:
            log.error("report on attempt %s did not arrive: %s", lease.attempt.id, error)
