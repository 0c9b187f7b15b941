"""Works off the queue for slots: gives free slots to waiting attempts, fairly between organizations, and denies those
that waited too long."""

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import connection

from attempts.execution.rules import FairRound, Share
from attempts.execution.services.outcome import dispatch_wake_up
from attempts.lifecycle.models import Attempt
from attempts.lifecycle.selectors.attempts import documents_of
from attempts.lifecycle.services.due import each_due
from attempts.lifecycle.services.freed import slots_wanted
from attempts.lifecycle.services.slots import slot_take, wait_seconds
from attempts.lifecycle.services.transition import entry_build
from attempts.lifecycle.states import SlotScope
from attempts.quarantine.services.open import attempt_refuse
from attempts.reviews.selectors.reviews import database_now
from governance.outages.selectors import deadline_in_force, lost_lately
from governance.sql.insert import insert_together
from reasoncodes.base.actors import CLOCK

# Attempts of one organization and workflow that are read at once. More are read when these are used up, without the
# contexts that were found full: a thousand that wait for one context must not block the attempts behind them.
LOOK_AHEAD = 20
MOST_PAGES = 50  # per organization and workflow in one run
MOST_PER_TICK = 200  # bounds one run of the scheduled task; the next one goes on
LATE_PAGES = 5  # of so many each, for those that waited too long
# By key, as for leases: rows that an outage gave more time would otherwise fill the first page.
TIMED_OUT = """
SELECT queued_until, id FROM attempts_attempt
WHERE queued_until <= statement_timestamp() AND (queued_until, id) > (%s, %s)
ORDER BY queued_until, id LIMIT %s
"""
START = ("-infinity", UUID(int=0))
# Who answers for the service that asked. A subquery and no join, so that the queue is always read by its index.
_PERSON = "coalesce((SELECT c.responsible_id::text FROM governance_serviceaccount c WHERE c.id = a.caller_id), '')"
# The oldest attempts of each queue (organization and workflow). The recursion jumps from queue to queue by the index
# `attempt_queue_order`: a DISTINCT would read every waiting row, so that one long queue would slow down all others.
WAITING = f"""
WITH RECURSIVE line AS (
    (SELECT organization_id, workflow_slug FROM attempts_attempt WHERE queued_until IS NOT NULL
     ORDER BY organization_id, workflow_slug LIMIT 1)
    UNION ALL
    SELECT following.organization_id, following.workflow_slug FROM line CROSS JOIN LATERAL (
        SELECT organization_id, workflow_slug FROM attempts_attempt
        WHERE queued_until IS NOT NULL
          AND (organization_id, workflow_slug) > (line.organization_id, line.workflow_slug)
        ORDER BY organization_id, workflow_slug LIMIT 1
    ) following
)
SELECT head.id, line.organization_id, line.workflow_slug, head.patient_context_ref, head.person,
    organization.capacity_units
FROM line JOIN governance_organization organization ON organization.id = line.organization_id
CROSS JOIN LATERAL (
    SELECT a.id, a.patient_context_ref, {_PERSON} AS person FROM attempts_attempt a
    WHERE a.organization_id = line.organization_id AND a.workflow_slug = line.workflow_slug
      AND a.queued_until > %s
    ORDER BY a.id LIMIT %s
) head
ORDER BY head.id
"""  # noqa: S608
NEXT = f"""
SELECT a.id, a.patient_context_ref, {_PERSON} FROM attempts_attempt a
WHERE a.organization_id = %s AND a.workflow_slug = %s AND a.queued_until > %s
    AND a.id > %s AND a.patient_context_ref <> ALL(%s) AND {_PERSON} <> ALL(%s)
ORDER BY a.id LIMIT %s
"""  # noqa: S608
LOCK = "SELECT 1 FROM attempts_attempt WHERE id = %s AND queued_until IS NOT NULL FOR NO KEY UPDATE SKIP LOCKED"
UNDER_WAY = """
SELECT organization_id, count(*) FROM attempts_slot WHERE organization_id = ANY(%s) GROUP BY organization_id
"""


@dataclass(frozen=True, slots=True)
class QueuedAttempt:
    attempt_id: UUID
    organization_id: UUID
    workflow_slug: str
    context: str
    person: str
    capacity: int


@dataclass(slots=True)
class Full:
    """Caps that were full in this run. Attempts under them are not tried again: each try costs a transaction."""

    found: set[tuple[Any, ...]] = field(default_factory=set)

    def covers(self, one: QueuedAttempt) -> bool:
        return any(self._name(scope, one) in self.found for scope in SlotScope if scope is not SlotScope.KEY)

    def note(self, scope: SlotScope, one: QueuedAttempt) -> None:
        self.found.add(self._name(scope, one))

    def subjects(self, scope: SlotScope, organization_id: UUID, slug: str) -> list[str]:
        """Contexts or people of the organization and workflow whose cap was full."""
        wanted = (scope, organization_id, slug)
        return [name for *of, name in self.found if tuple(of) == wanted]

    @staticmethod
    def _name(scope: SlotScope, one: QueuedAttempt) -> tuple[Any, ...]:
        # With the workflow: another contract may have a higher cap for the same context or organization.
        wide = dict.fromkeys((SlotScope.WORKFLOW, SlotScope.TENANT, SlotScope.REGION), "")
        part = wide | {SlotScope.CONTEXT: one.context, SlotScope.USER: one.person}
        return scope, one.organization_id, one.workflow_slug, part.get(scope, str(one.attempt_id))


def queue_dispatch() -> int:
    """Denies attempts that waited too long, then gives out free slots. Returns how many attempts got theirs."""
    each_due(_late(), _time_out, tick="queue_time_out")
    # What an outage gave more time still waits, although its row says that its wait is over.
    now = database_now()
    since = now - lost_lately(now)
    return _dispatch(_waiting(since), since)


def _late() -> Iterator[UUID]:
    after: tuple[datetime | str, UUID] = START
    for _ in range(LATE_PAGES):
        with connection.cursor() as cursor:
            cursor.execute(TIMED_OUT, [*after, MOST_PER_TICK])
            rows = cursor.fetchall()
        yield from (row[1] for row in rows)
        if len(rows) < MOST_PER_TICK:
            return
        after = rows[-1]


def _waiting(since: datetime) -> list[QueuedAttempt]:
    with connection.cursor() as cursor:
        cursor.execute(WAITING, [since, LOOK_AHEAD])
        return [QueuedAttempt(*row) for row in cursor.fetchall()]


def queue_deadline(attempt: Attempt, *, now: datetime) -> datetime | None:
    """When its wait is really over: time in which Holdpoint gave out no slots does not count. The row keeps what was
    promised."""
    if attempt.queued_until is None or attempt.queued_until > now:
        return attempt.queued_until
    seconds = wait_seconds(documents_of(attempt)["concurrency_and_locks"], is_step=attempt.origin_step is not None)
    return deadline_in_force(attempt.queued_until, began=attempt.queued_until - timedelta(seconds=seconds), now=now)


class Line:
    """The waiting attempts of one organization, the oldest first; more are read when those of a workflow are used
    up."""

    def __init__(self, heads: Sequence[QueuedAttempt], full: Full, since: datetime) -> None:
        self._full = full
        self._since = since
        self._waiting = [(one.attempt_id.int, one) for one in heads]
        heapq.heapify(self._waiting)
        self._left = Counter(one.workflow_slug for one in heads)
        self._pages: Counter[str] = Counter()
        # Fewer than were asked for: there are no more.
        self._ended = {slug for slug, count in self._left.items() if count < LOOK_AHEAD}
        self.capacity = heads[0].capacity

    def take(self) -> QueuedAttempt | None:
        """The oldest one whose caps were not full so far."""
        while self._waiting:
            _, one = heapq.heappop(self._waiting)
            self._left[one.workflow_slug] -= 1
            if not self._left[one.workflow_slug]:
                self._read_on(one)
            if not self._full.covers(one):
                return one
        return None

    def _read_on(self, last: QueuedAttempt) -> None:
        slug = last.workflow_slug
        if slug in self._ended or self._pages[slug] >= MOST_PAGES:
            return
        self._pages[slug] += 1
        scopes = (SlotScope.CONTEXT, SlotScope.USER)
        without = [self._full.subjects(scope, last.organization_id, slug) for scope in scopes]
        with connection.cursor() as cursor:
            cursor.execute(NEXT, [last.organization_id, slug, self._since, last.attempt_id, *without, LOOK_AHEAD])
            rows = cursor.fetchall()
        for attempt_id, context, person in rows:
            one = replace(last, attempt_id=attempt_id, context=context, person=person)
            heapq.heappush(self._waiting, (attempt_id.int, one))
        self._left[slug] += len(rows)
        if len(rows) < LOOK_AHEAD:
            self._ended.add(slug)


def _dispatch(waiting: Sequence[QueuedAttempt], since: datetime) -> int:
    heads: dict[UUID, list[QueuedAttempt]] = defaultdict(list)
    for one in waiting:
        heads[one.organization_id].append(one)
    full, placed = Full(), 0
    lines = {organization_id: Line(found, full, since) for organization_id, found in heads.items()}
    turns = FairRound(_shares(lines))
    while placed < MOST_PER_TICK and (organization_id := turns.turn()) is not None:
        candidate = lines[organization_id].take()
        if candidate is None:
            continue
        if _tried(candidate, full):
            placed += 1
            turns.served(organization_id)
        else:
            turns.waits(organization_id)
    return placed


def _shares(lines: dict[UUID, Line]) -> dict[UUID, Share]:
    with connection.cursor() as cursor:
        cursor.execute(UNDER_WAY, [list(lines)])
        under_way = dict(cursor.fetchall())
    return {key: Share(line.capacity, under_way.get(key, 0)) for key, line in lines.items()}


def _tried(one: QueuedAttempt, full: Full) -> bool:
    """Whether the attempt got its slots. One that fails is skipped and does not keep the others waiting."""
    return each_due([one.attempt_id], lambda _: _take_slots(one, full), tick="queue_hand_out") == 1


def _take_slots(one: QueuedAttempt, full: Full) -> bool:
    attempt = _locked(one.attempt_id)
    # Its deadline may pass in the middle of a round.
    if attempt is None or _over(attempt):
        return False
    # The attempt's row is locked before the slots are taken, so two workers cannot take slots for the same attempt.
    busy = slot_take(attempt)
    if busy is not None:
        full.note(busy.cap.scope, one)
        slots_wanted()
        return False
    # The database's clock: a lease compares `next_eligible_at` with it, and a worker's clock may be ahead.
    with connection.cursor() as cursor:
        cursor.execute("SELECT statement_timestamp()")
        (now,) = cursor.fetchone()
    attempt.queued_until, attempt.next_eligible_at = None, now
    attempt.save(update_fields=["queued_until", "next_eligible_at"])
    insert_together([entry_build(attempt, "attempt.placed", actor=CLOCK, at=now)])
    dispatch_wake_up(attempt)
    return True


def _time_out(attempt_id: UUID) -> bool:
    """Ends an attempt whose wait is over. The recorded time is the end of the wait, not when the task noticed it."""
    attempt = _locked(attempt_id)
    ended = _over(attempt) if attempt else None
    if attempt is None or ended is None:
        return False
    attempt_refuse(attempt, actor=CLOCK, at=ended, reason_code="concurrency_limit")
    return True


def _over(attempt: Attempt) -> datetime | None:
    """When its wait ended; None while it waits. By the database's clock."""
    now = database_now()
    ends = queue_deadline(attempt, now=now)
    return ends if ends is not None and ends <= now else None


def _locked(attempt_id: UUID) -> Attempt | None:
    """Locks the attempt if it still waits. None if another worker has the row or was faster."""
    # SKIP LOCKED: two runs of the task at once must not wait for each other.
    with connection.cursor() as cursor:
        cursor.execute(LOCK, [attempt_id])
        if cursor.fetchone() is None:
            return None
    return Attempt.objects.select_related("organization", "contract").get(id=attempt_id)
