"""The clock's part: a case that nobody resolved in time is escalated. It never resolves anything."""

from datetime import datetime

from django.db import transaction

from attempts.models import QuarantineCase
from governance.ledger.append import ledger_append
from reasoncodes.actors import CLOCK
from reasoncodes.tenancy import every_tenant

BATCH = 200


def quarantine_escalate_due(*, at: datetime) -> int:
    """Costs what is due; safe when two beats run: rows that another one holds are skipped."""
    with every_tenant(), transaction.atomic():
        due = list(
            QuarantineCase.objects.select_for_update(skip_locked=True, no_key=True)
            .filter(resolution="", escalated_at=None, escalate_at__lte=at)
            .order_by("escalate_at")[:BATCH]
        )
        for case in due:
            case.escalated_at = at
            case.save(update_fields=["escalated_at"])
            ledger_append(
                action="quarantine.escalated",
                organization_id=case.organization_id,
                subject_type="quarantine_case",
                subject_id=case.id,
                actor=CLOCK,
                at=case.escalate_at,
                payload={"attempt": str(case.attempt_id), "owner": case.escalation_owner},
                reason_code=case.reason_code,
            )
    return len(due)
