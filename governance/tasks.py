"""Doors of the worker and the clock to the record."""

from celery import shared_task
from django.conf import settings
from django.utils import timezone

from governance.ledger.keys import SealingKey, key_read
from governance.services import seal
from governance.services.intake_minutes import minutes_count
from reasoncodes.tenancy import every_tenant


def sealing_key() -> SealingKey:
    """From the environment or a file, as the settings say; see docs/operations.md."""
    return key_read(
        name=settings.LEDGER_NAME,
        text=settings.LEDGER_KEY,
        file=str(settings.LEDGER_KEY_FILE),
        create=settings.LEDGER_KEY_CREATE,
    )


@shared_task
def ledger_seal() -> None:
    with every_tenant():
        seal.ledger_seal_all(at=timezone.now(), key=sealing_key())


@shared_task
def intake_minutes_count() -> None:
    """For the dashboard. Nothing depends on it: a minute that is not counted yet is read from the decisions."""
    with every_tenant():
        minutes_count(at=timezone.now())
