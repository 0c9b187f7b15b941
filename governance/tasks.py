"""Doors of the worker and the clock to the record."""

from uuid import UUID

from celery import shared_task
from django.conf import settings
from django.core.files.storage import storages
from django.utils import timezone

from governance.ledger.keys import SealingKey, key_read
from governance.selectors.evidence import bundles_due
from governance.services import evidence_build as evidence
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


@shared_task
def evidence_build(bundle_id: str) -> None:
    with every_tenant():
        evidence.evidence_build(bundle_id=UUID(bundle_id), now=timezone.now, storage=storages["evidence"])


@shared_task
def evidence_resume() -> None:
    """Those that wait for the sealer or the storage, and those whose worker died."""
    with every_tenant():
        for bundle_id in bundles_due():
            evidence.evidence_build(bundle_id=bundle_id, now=timezone.now, storage=storages["evidence"])
