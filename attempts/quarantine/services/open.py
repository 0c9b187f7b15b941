"""Quarantines a failed attempt: the state change, and the case with its category, owner and time of escalation."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Protocol

from attempts.lifecycle.models import Attempt
from attempts.lifecycle.selectors.attempts import documents_of
from attempts.lifecycle.services.transition import transition_apply
from attempts.quarantine.models import QuarantineCase
from attempts.quarantine.states import QuarantineCategory
from reasoncodes.base.actors import Actor


class CaseOpened(Protocol):
    def __call__(self, case: QuarantineCase, *, at: datetime) -> None: ...


_opened: list[CaseOpened] = []


def on_case_opened(handler: CaseOpened) -> CaseOpened:
    """Registers a handler that is called in the transaction that opens a case."""
    # By name, because who is told of cases stands above what opens them. Once, also if `ready()` runs again.
    if handler not in _opened:
        _opened.append(handler)
    return handler


def category_for(documents: Mapping[str, Any], trigger: str) -> QuarantineCategory:
    """The category that the contract's failure_quarantine document gives to this trigger."""
    triggers = documents["failure_quarantine"]["triggers"]
    return QuarantineCategory(next(row["category"] for row in triggers if row["on"] == trigger))


def attempt_refuse(
    attempt: Attempt,
    *,
    actor: Actor,
    at: datetime,
    reason_code: str,
    payload: Mapping[str, Any] | None = None,
    tell: bool = True,
) -> None:
    """Ends a stored and locked attempt that may not be executed: denied, or quarantined if it was tried before."""
    # A denial says that nothing was ever sent.
    said = payload or {}
    if attempt.tries == 0:
        transition_apply(attempt, "deny", actor=actor, at=at, tell=tell, payload=said, reason_code=reason_code)
        return
    late = reason_code == "retry_window_passed"
    trigger = "deadline_passed_before_intent" if late else "recheck_refused_after_lease"
    quarantine_open(
        attempt,
        actor=actor,
        at=at,
        category=category_for(documents_of(attempt), trigger),
        reason_code="adapter_failed",
        payload={"trigger": trigger, "refused": reason_code, **said},
        tell=tell,
    )


def quarantine_open(
    attempt: Attempt,
    *,
    actor: Actor,
    at: datetime,
    category: QuarantineCategory,
    reason_code: str,
    payload: Mapping[str, Any],
    tell: bool = True,
) -> QuarantineCase:
    """Quarantines a stored and locked attempt and releases its slots. `tell` as in `transition_apply`."""
    rules = documents_of(attempt)["failure_quarantine"]
    case = QuarantineCase(
        organization_id=attempt.organization_id,
        attempt=attempt,
        category=category,
        reason_code=reason_code,
        escalation_owner=rules["escalation_owner"],
        escalate_at=at + timedelta(seconds=rules["escalation_after_seconds"]),
        opened_at=at,
    )
    recorded = {"case": str(case.id), "category": category.value, **payload}
    transition_apply(attempt, "quarantine", actor=actor, at=at, tell=tell, payload=recorded, reason_code=reason_code)
    case.save(force_insert=True)
    for told in _opened:
        told(case, at=at)
    return case
