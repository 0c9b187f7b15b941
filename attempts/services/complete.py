"""The receipt of a success and the end of the attempt, in one transaction, under the fence."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import transaction

from attempts.crash_points import crash_point
from attempts.models import Attempt, Receipt
from attempts.services.held import Report, held_lock, late_keep, lease_lost, reported_before
from attempts.services.transition import transition_apply
from attempts.states import ReceiptOutcome
from governance.insert import insert_together
from governance.services.violation import violations_recorded
from reasoncodes.actors import Actor


@dataclass(frozen=True, slots=True)
class Success:
    """What came back. It has passed the boundary."""

    response_metadata: dict[str, Any] = field(default_factory=dict)
    cost: dict[str, Any] | None = None
    reversible: bool = False
    reversal_hint: str = ""


@violations_recorded
def attempt_complete(*, actor: Actor, at: datetime, report: Report, result: Success) -> Attempt:
    """A report under a lost lease is kept as late evidence, and refused."""
    with transaction.atomic():
        held = held_lock(report=report)
        if held.holds:
            receipt = Receipt(
                attempt=held.attempt,
                intent=held.intent,
                outcome=ReceiptOutcome.SUCCESS,
                response_metadata=result.response_metadata,
                cost=result.cost,
                reversible=result.reversible,
                reversal_hint=result.reversal_hint,
                at=at,
            )
            insert_together([receipt])
            payload = {"receipt": str(receipt.id), "fence": report.fence}
            transition_apply(held.attempt, "complete", actor=actor, at=at, payload=payload)
            crash_point("before_commit")
            return held.attempt
        if reported_before(held=held, outcome=ReceiptOutcome.SUCCESS):
            return held.attempt
        late_keep(held=held, outcome=ReceiptOutcome.SUCCESS, actor=actor, at=at)
    raise lease_lost(held)
