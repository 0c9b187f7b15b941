"""The rules of what may be erased and what blocks it, for previews. Pure. The database functions have the same rules in
SQL and decide when an item is erased."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from governance.retention.states import HoldScope

LEGAL_HOLD: Final = "legal_hold"
QUARANTINE_UNRESOLVED: Final = "quarantine_unresolved"
NOT_FINISHED: Final = "not_finished"
RETENTION_NOT_OVER: Final = "retention_not_over"
NOTHING_TO_ERASE: Final = "nothing_to_erase"
# If several apply, the first one is named: a legal hold takes precedence.
BLOCKERS: Final = (LEGAL_HOLD, QUARANTINE_UNRESOLVED, NOT_FINISHED, RETENTION_NOT_OVER)
# Reasons that only a person can judge; each needs a note.
STATUTORY_DUTY: Final = "statutory_duty"
REQUEST_NOT_VERIFIED: Final = "request_not_verified"
JUDGED: Final = (STATUTORY_DUTY, REQUEST_NOT_VERIFIED)
LAWFUL_REFUSALS: Final = frozenset({*BLOCKERS, NOTHING_TO_ERASE, *JUDGED})


@dataclass(frozen=True, slots=True)
class RetentionSubject:
    """What the rules need to know of an attempt, a run, an event or a person. `references`: those that a legal hold may
    name. `retention_until` was computed from `created_at`; retention counts from the last activity."""

    kind: str
    id: UUID
    created_at: datetime
    last_activity_at: datetime
    retention_until: datetime | None
    finished: bool
    unresolved: bool
    contract: str = ""
    references: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Hold:
    """An active legal hold. For a context, `target` is the reference itself if it is known."""

    scope: str
    target: str


def kept_until(subject: RetentionSubject) -> datetime | None:
    """The end of retention; None if it is unknown: then the subject is kept."""
    if subject.retention_until is None:
        return None
    # The end moves by as much as the last activity came later. One day more, because years differ in length.
    later = max(subject.last_activity_at - subject.created_at, timedelta())
    return subject.retention_until + later + (timedelta(days=1) if later else timedelta())


def covers(hold: Hold, subject: RetentionSubject) -> bool:
    match hold.scope:
        case HoldScope.ORGANIZATION:
            return True
        case HoldScope.CONTRACT:
            return hold.target == subject.contract
        case HoldScope.ATTEMPT:
            return _is(subject, "attempt", hold.target) or f"attempt/{hold.target}" in subject.references
        case HoldScope.RUN:
            return _is(subject, "run", hold.target) or f"workflow-instance/{hold.target}" in subject.references
        case _:
            return hold.target in subject.references


def _is(subject: RetentionSubject, kind: str, target: str) -> bool:
    return subject.kind == kind and str(subject.id) == target


def blocker(subject: RetentionSubject, *, holds: Collection[Hold], at: datetime) -> str:
    """The reason code of what blocks the erasure; empty if a person may order it."""
    until = kept_until(subject)
    if any(covers(hold, subject) for hold in holds):
        return LEGAL_HOLD
    if subject.unresolved:
        return QUARANTINE_UNRESOLVED
    if not subject.finished:
        return NOT_FINISHED
    return RETENTION_NOT_OVER if until is None or until > at else ""


def blockers_counted(
    subjects: Iterable[RetentionSubject], *, holds: Collection[Hold], at: datetime
) -> tuple[list[RetentionSubject], dict[str, int]]:
    """The subjects that may be erased, and how many may not, by reason in the order of BLOCKERS."""
    free: list[RetentionSubject] = []
    counted = dict.fromkeys(BLOCKERS, 0)
    for subject in subjects:
        found = blocker(subject, holds=holds, at=at)
        if found:
            counted[found] += 1
        else:
            free.append(subject)
    return free, {code: count for code, count in counted.items() if count}
