"""Executes due attempts in fair turns: which organization, and whether its receiver has a free place.

Every place (a thread of the worker) chooses, executes and chooses again until nothing is left. A message only wakes the
first place up; whoever finds more than one due attempt wakes up the next.
"""

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol
from uuid import UUID

import structlog
from django.db import connection

from attempts.execution.adapters.base import Outcome, receiver_name
from attempts.execution.services.dispatch import Executed, attempt_execute
from attempts.execution.sql import HEADS
from attempts.fairness.rules import FairQueue, Turn
from attempts.lifecycle.states import DISPATCH
from attempts.receivers.rules import Bulkheads, CallHealth, Circuit, call_health
from attempts.receivers.selectors import Receiver, circuits_in_trouble
from attempts.receivers.services import call_note, probe_give_back, probe_take
from governance.outside.wake_up import wake_up_once, wake_up_received
from reasoncodes.base.tenancy import every_tenant
from reasoncodes.base.trace import trace_of

log = structlog.get_logger("holdpoint.dispatch")
# After this time a place is given back, so that the worker can be stopped and its other messages are read.
LONGEST_RUN = 30.0


class DueWork(Protocol):
    """Something that is to be sent to a receiver: an attempt, or what an app above has."""

    @property
    def attempt_id(self) -> UUID: ...

    @property
    def organization_id(self) -> UUID: ...

    @property
    def weight(self) -> int: ...

    @property
    def trace_id(self) -> str: ...

    @property
    def waited(self) -> float: ...

    @property
    def receiver(self) -> Receiver: ...


@dataclass(frozen=True, slots=True)
class DueAttempt:
    attempt_id: UUID
    organization_id: UUID
    organization: str
    weight: int
    connector: str
    workflow_slug: str
    trace_id: str
    waited: float

    @property
    def receiver(self) -> Receiver:
        name = receiver_name(connector=self.connector, route=f"{self.organization}/{self.workflow_slug}")
        return Receiver(self.organization_id, self.connector, name)


@dataclass(frozen=True, slots=True)
class Chosen:
    """A place that was given to one attempt. `more`: others are due too."""

    attempt_id: UUID
    trace_id: str
    receiver: Receiver
    circuit: Circuit | None
    turn: Turn[UUID]
    began: float
    probes: bool
    more: bool


@dataclass(slots=True)
class Places:
    """The places of this process: who has one, and whose turn is next. `heads` finds what is due, without what it is
    given."""

    size: int
    heads: "Callable[[list[UUID]], Sequence[DueWork]]" = field(default_factory=lambda: _heads)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _queue: FairQueue[UUID] = field(default_factory=FairQueue)
    _taken: set[UUID] = field(default_factory=set)
    _circuits: dict[Receiver, Circuit] = field(default_factory=dict)
    _bulkheads: Bulkheads = field(init=False)

    def __post_init__(self) -> None:
        self._bulkheads = Bulkheads(self.size)

    def choose(self, *, at: datetime, passed: Iterable[UUID] = ()) -> Chosen | None:
        """Gives a place to the attempt whose turn it is; None if none may be sent now. `passed`: attempts that the
        caller has tried in vain."""
        with self._lock:
            self._circuits = dict(circuits_in_trouble())
            due = self.heads([*self._taken, *passed])
            now = time.monotonic()
            free = [one for one in due if self._free(one.receiver, at=at, now=now)]
            while free:
                mine = self._turn(free)
                circuit = self._circuits.get(mine.receiver)
                probes = circuit is not None and circuit.opened_at is not None
                if not probes or probe_take(receiver=mine.receiver, at=at):
                    return self._give(mine, circuit, now, probes=probes, more=len(free) > 1)
                free = [one for one in free if one.receiver != mine.receiver]
        return None

    def end(self, chosen: Chosen, *, outcome: Outcome | None) -> CallHealth:
        """Takes the place back."""
        health = CallHealth.NOTHING if outcome is None else call_health(outcome.response_metadata)
        with self._lock:
            now = time.monotonic()
            good = health is CallHealth.GOOD
            self._bulkheads.end(chosen.receiver, began=chosen.began, now=now, good=good)
            self._taken.discard(chosen.attempt_id)
            if outcome is None:
                self._queue.cancel(chosen.turn)
            else:
                self._queue.end(chosen.turn, seconds=now - chosen.began)
        return health

    def _free(self, receiver: Receiver, *, at: datetime, now: float) -> bool:
        circuit = self._circuits.get(receiver)
        if circuit is not None and not circuit.lets_through(at=at):
            return False
        return self._bulkheads.has_room(receiver, now=now)

    def _turn(self, free: list[DueWork]) -> DueWork:
        key = self._queue.choose({one.organization_id: one.weight for one in free})
        return max((one for one in free if one.organization_id == key), key=lambda one: one.waited)

    def _give(self, mine: DueWork, circuit: Circuit | None, now: float, *, probes: bool, more: bool) -> Chosen:
        self._bulkheads.begin(mine.receiver, now=now)
        self._taken.add(mine.attempt_id)
        turn = self._queue.begin(mine.organization_id, mine.weight)
        return Chosen(mine.attempt_id, mine.trace_id, mine.receiver, circuit, turn, now, probes, more)


def _heads(taken: list[UUID]) -> list[DueAttempt]:
    """The two oldest due attempts of each line: the second one shows that there is more to do."""
    with connection.cursor() as cursor:
        cursor.execute(HEADS, {"taken": taken, "each": 2})
        return [DueAttempt(*row) for row in cursor.fetchall()]


_process: list[Places] = []
_process_lock = threading.Lock()
_stopping = threading.Event()


def process_places(size: int) -> Places:
    """One for all threads of this process."""
    with _process_lock:
        if not _process:
            _process.append(Places(size))
        return _process[0]


def work_stop() -> None:
    """This process is about to end: no place begins another attempt."""
    _stopping.set()


def attempts_work(*, now: Callable[[], datetime], places: Places) -> int:
    """Executes due attempts until none is left that may be sent, and returns how many were sent."""
    return due_work(now=now, places=places, task=DISPATCH, execute=attempt_execute)


class Execute(Protocol):
    def __call__(self, *, attempt_id: UUID, now: Callable[[], datetime]) -> Executed: ...


def due_work(*, now: Callable[[], datetime], places: Places, task: str, execute: Execute) -> int:
    """Gives places to what is due until nothing is left that may be sent. `task` is woken up while there is more."""
    wake_up_received(task)
    sent, passed, ends_at = 0, set[UUID](), time.monotonic() + LONGEST_RUN
    with every_tenant():
        while not _stopping.is_set():
            if time.monotonic() > ends_at:
                wake_up_once(task)
                break
            chosen = places.choose(at=now(), passed=passed)
            if chosen is None:
                break
            if chosen.more:
                wake_up_once(task)
            with trace_of(chosen.trace_id):
                done = _execute(chosen, places, now, execute)
            if done.outcome is not None:
                sent += 1
            else:
                passed.add(chosen.attempt_id)
    return sent


def _execute(chosen: Chosen, places: Places, now: Callable[[], datetime], execute: Execute) -> Executed:
    done = Executed()
    try:
        done = execute(attempt_id=chosen.attempt_id, now=now)
    finally:
        health = places.end(chosen, outcome=done.outcome)
    if health is CallHealth.BAD or (health is CallHealth.GOOD and chosen.circuit is not None):
        why = str(done.outcome.response_metadata.get("failure", "")) if done.outcome else ""
        call_note(receiver=chosen.receiver, health=health, why=why, at=now())
    elif chosen.probes:
        probe_give_back(receiver=chosen.receiver)
    return done
