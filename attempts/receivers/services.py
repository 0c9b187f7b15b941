"""Opens and closes circuits of receivers, and lets one probe at a time through an open one."""

from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Q, QuerySet

from attempts.receivers.models import ReceiverCircuit
from attempts.receivers.rules import PROBE_SECONDS, CallHealth, Circuit, bad_weight
from attempts.receivers.selectors import Receiver
from governance.ledger.services import ledger_append
from reasoncodes.base.actors import SYSTEM


def probe_take(*, receiver: Receiver, at: datetime) -> bool:
    """Takes the one probe of an open circuit; False if another worker was faster or it is not time."""
    free = Q(probing_until=None) | Q(probing_until__lte=at)
    due = Q(probe_at=None) | Q(probe_at__lte=at)
    mine = _rows(receiver).filter(free, due, opened_at__isnull=False)
    return mine.update(probing_until=at + timedelta(seconds=PROBE_SECONDS)) == 1


def probe_give_back(*, receiver: Receiver) -> None:
    """Nothing was sent: the next one may probe."""
    _rows(receiver).update(probing_until=None)


def call_note(*, receiver: Receiver, health: CallHealth, why: str, at: datetime) -> None:
    """Counts what came of a call. A good one after failures closes the circuit."""
    if health is CallHealth.NOTHING:
        return
    with transaction.atomic():
        if health is CallHealth.BAD:
            _rows_make(receiver, at)
        row = _rows(receiver).select_for_update(no_key=True).first()
        if row is None:
            return
        before = row.circuit
        row.circuit = before.after_bad(at=at, weight=bad_weight(why)) if health is CallHealth.BAD else Circuit()
        row.last_why, row.changed_at = why[:64], at
        row.save()
        _record(row, before, at)


def _rows_make(receiver: Receiver, at: datetime) -> None:
    # Two workers whose calls fail at once both want to make the row.
    made = ReceiverCircuit(
        organization_id=receiver.organization_id,
        connector=receiver.connector,
        receiver=receiver.name,
        changed_at=at,
    )
    ReceiverCircuit.objects.bulk_create([made], ignore_conflicts=True)


def _rows(receiver: Receiver) -> QuerySet[ReceiverCircuit]:
    return ReceiverCircuit.objects.filter(
        organization_id=receiver.organization_id, connector=receiver.connector, receiver=receiver.name
    )


def _record(row: ReceiverCircuit, before: Circuit, at: datetime) -> None:
    """On the ledger when it opens and when it closes; failures between only in the row."""
    if (before.opened_at is None) == (row.opened_at is None):
        return
    opened = row.opened_at is not None
    ledger_append(
        action="receiver.circuit_opened" if opened else "receiver.circuit_closed",
        organization_id=row.organization_id,
        subject_type="receiver",
        subject_id=row.id,
        actor=SYSTEM,
        at=at,
        payload={"connector": row.connector, "failures": row.failures, "why": row.last_why}
        if opened
        else {"connector": row.connector, "open_for_s": round((at - before.opened_at).total_seconds())},  # type: ignore[operator]
    )
