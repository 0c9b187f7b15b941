"""Takes what was released, does it with your handler, and reports. One piece of work at a time: start more processes.

A handler that returns did it; one that raises `NotDone` did not; after any other error nobody knows, and a person is
asked. If this process dies, nothing is done again by itself.
"""

import logging
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from holdpoint_client.client import Holdpoint
from holdpoint_client.errors import HoldpointError, LeaseLost, TryLater, Unreachable
from holdpoint_client.handling import Failure, Returned, Success, failure_of, success_of
from holdpoint_client.heart import Heart
from holdpoint_client.reporting import report
from holdpoint_client.results import Lease

log = logging.getLogger("holdpoint_client")
Handler = Callable[[Lease], Returned]
SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Executor:
    """`poll`: seconds between looks when there is nothing to do, the shortest and the longest."""

    def __init__(
        self,
        client: Holdpoint,
        handler: Handler,
        *,
        connector: str | None = None,
        poll: tuple[float, float] = (0.5, 5.0),
    ) -> None:
        self.client, self.handler, self.connector, self.poll = client, handler, connector, poll
        self.done = 0
        self._stop = threading.Event()

    def stop(self) -> None:
        """No more work is taken; what is under way is finished and reported."""
        self._stop.set()

    def run(self) -> None:
        """Until `stop`, or SIGTERM or SIGINT in the main thread. A second signal interrupts the handler, whose outcome
        then counts as unknown."""
        with self._signals():
            idle = self.poll[0]
            while not self._stop.is_set():
                if self.run_once():
                    idle = self.poll[0]
                    continue
                self._stop.wait(idle)
                idle = min(self.poll[1], idle * 2)

    def run_once(self) -> bool:
        """Whether there was something to do. A wrong key or a missing scope is raised: waiting would not help."""
        try:
            leases = self.client.lease_many(connector=self.connector, limit=1)
        except (Unreachable, TryLater) as error:
            log.warning("nothing leased: %s", error)
            return False
        for lease in leases:
            self._work(lease)
        return bool(leases)

    def _work(self, lease: Lease) -> None:
        interrupted: BaseException | None = None
        end: Success | Failure
        with Heart(self.client, lease):
            try:
                end = success_of(self.handler(lease))
            except Exception as error:
                log.warning("handler of attempt %s raised %s", lease.attempt.id, type(error).__name__)
                end = failure_of(error)
            except BaseException as error:
                interrupted, end = error, failure_of(error)
        self._report(lease, end)
        if interrupted is not None:
            raise interrupted

    def _report(self, lease: Lease, end: Success | Failure) -> None:
        """Under a lost lease too: it is kept as late evidence for whoever looks into it."""
        try:
            report(self.client, lease, end)
            self.done += 1
        except LeaseLost:
            log.warning("the lease of attempt %s was lost; the report is kept as late evidence", lease.attempt.id)
        except HoldpointError as error:
            log.error("report on attempt %s did not arrive: %s", lease.attempt.id, error)

    @contextmanager
    def _signals(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self._signalled) for number in SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _signalled(self, number: int, frame: FrameType | None) -> None:
        if self._stop.is_set():
            raise KeyboardInterrupt
        self.stop()
