"""One request with all its tries, without any input or output: what to send, how long to pause, when to stop.

The same bytes go out every time: a `Call` cannot be changed, and an `Exchange` never makes another.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from holdpoint_client.errors import HoldpointError, Unreachable
from holdpoint_client.problem import problem_parse
from holdpoint_client.retry import RetryPolicy, retry_after

SHORTEST = 0.05  # seconds: no try is begun with less than this left


class Repeat(Enum):
    SAFE = "a read, or the server recognises a repetition"
    UNSENT = "only while it is certain that nothing was done with it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A request in its final bytes. `seconds`: how long one try may wait for its answer."""

    method: str
    path: str
    headers: tuple[tuple[str, str], ...] = ()
    params: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    repeat: Repeat = Repeat.UNSENT
    executes: bool = False
    seconds: float = 15.0


@dataclass(frozen=True, slots=True)
class Reply:
    """Header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    asked: float | None = None  # Retry-After in seconds

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300


@dataclass(frozen=True, slots=True)
class Lost:
    """No answer. `sent`: part of the request may have reached somebody."""

    why: str
    sent: bool


@dataclass(frozen=True, slots=True)
class Send:
    call: Call
    timeout: float


@dataclass(frozen=True, slots=True)
class Pause:
    seconds: float


@dataclass(frozen=True, slots=True)
class Done:
    reply: Reply


@dataclass(frozen=True, slots=True)
class GaveUp:
    error: HoldpointError


class Exchange:
    def __init__(self, call: Call, policy: RetryPolicy, *, now: float, dice: Callable[[], float]) -> None:
        self.call, self.policy, self._dice = call, policy, dice
        self.ends_at = now + policy.deadline
        self.tries = 0
        self.uncertain = False

    def send(self, *, now: float) -> Send:
        self.tries += 1
        return Send(self.call, max(SHORTEST, min(self.call.seconds, self.ends_at - now)))

    def heard(self, event: Reply | Lost, *, now: float) -> Done | Pause | GaveUp:
        if isinstance(event, Lost):
            self.uncertain = self.uncertain or event.sent
            again = not event.sent or self.call.repeat is Repeat.SAFE
            return self._pause(None, now) if again and self._more(None, now) else GaveUp(self._unreachable(event))
        if passes(event, self.call) and self._more(event.asked, now):
            return self._pause(event.asked, now)
        return Done(event)

    def _more(self, asked: float | None, now: float) -> bool:
        """Whether another try fits. A server that asks for more time than is left is not asked again."""
        return self.tries < self.policy.most_tries and now + (asked or 0.0) + SHORTEST <= self.ends_at

    def _pause(self, asked: float | None, now: float) -> Pause:
        wanted = self.policy.pause(self.tries, asked, self._dice())
        return Pause(max(0.0, min(wanted, self.ends_at - SHORTEST - now)))

    def _unreachable(self, event: Lost) -> Unreachable:
        return Unreachable(event.why, sent=self.uncertain)


def passes(reply: Reply, call: Call) -> bool:
    """Whether this answer may be another one later. Of the 4xx only these three; a 503 of something between here and
    Holdpoint, or a 5xx, only where a repetition is recognised."""
    if reply.status in {425, 429}:
        return True
    if reply.status not in {409, 500, 502, 503, 504}:
        return False
    problem = problem_parse(reply.status, reply.headers, reply.body)
    if reply.status == 409:
        return problem.code == "idempotency-in-progress"
    return call.repeat is Repeat.SAFE or (reply.status == 503 and problem.ours)


def reply_of(status: int, headers: Mapping[str, str], body: bytes, *, wall: datetime) -> Reply:
    lowered = {name.lower(): value for name, value in headers.items()}
    return Reply(status, lowered, body, retry_after(lowered, wall=wall))
