"""How long deliveries are kept: a log of the transport, not the record. What they told of is in the ledger."""

from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction

from governance.models import ErasureItem, LegalHold
from governance.states import HoldState
from reasoncodes.actors import Actor
from workflows.models import WebhookAttempt, WebhookDelivery

BATCH = 1000
MOST_BATCHES = 100


def deliveries_trim(*, at: datetime, keep: timedelta) -> int:
    """Those older than `keep`, pending ones too: nothing is tried for so long. Where a legal hold is active, none."""
    before = _first_id(at - keep)
    held = LegalHold.objects.filter(state=HoldState.ACTIVE).values("organization_id")
    total = 0
    for _ in range(MOST_BATCHES):
        with transaction.atomic():
            rows = WebhookDelivery.objects.select_for_update(skip_locked=True).filter(id__lt=before)
            ids = list(rows.exclude(organization_id__in=held).order_by("id").values_list("id", flat=True)[:BATCH])
            WebhookAttempt.objects.filter(delivery_id__in=ids).delete()
            WebhookDelivery.objects.filter(id__in=ids).delete()
        total += len(ids)
        if len(ids) < BATCH:
            break
    return total


def _first_id(at: datetime) -> UUID:
    """The smallest id of that millisecond: ids begin with the moment, so the primary key finds the oldest rows."""
    return UUID(int=int(at.timestamp() * 1000) << 80)


def deliveries_erase(item: ErasureItem, actor: Actor, at: datetime) -> None:
    """In the transaction of an erasure: what was told about the subject cannot be read or sent again."""
    about = WebhookDelivery.objects.filter(
        organization_id=item.organization_id, subject_id__in={item.subject_id, *item.related}
    )
    about.exclude(body=b"").update(body=b"")
