"""Doors of the worker and the clock to the record."""

from celery import shared_task
from django.conf import settings
from django.utils import timezone

from governance.ledger.keys import SealingKey, key_read
from governance.services import seal
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
