"""Tasks of evidence bundles: build one, continue unfinished ones, remove erased files."""

from uuid import UUID

from celery import shared_task
from django.core.files.storage import storages
from django.utils import timezone

from governance.evidence.selectors import bundles_due, bundles_to_remove
from governance.evidence.services import at_end
from governance.evidence.services import build as evidence
from governance.evidence.services.bundles import evidence_remove as bundle_remove
from reasoncodes.base.tenancy import every_tenant


@shared_task(name="governance.tasks.evidence_build")
def evidence_build_task(bundle_id: str) -> None:
    with every_tenant():
        evidence.evidence_build(bundle_id=UUID(bundle_id), now=timezone.now, storage=storages["evidence"])


@shared_task(name="governance.tasks.evidence_resume")
def evidence_resume_task() -> None:
    """Continues bundles that wait for the sealer or the storage or whose worker died, and removes erased files."""
    with every_tenant():
        for bundle_id in bundles_due():
            evidence.evidence_build(bundle_id=bundle_id, now=timezone.now, storage=storages["evidence"])
        for bundle_id in bundles_to_remove():
            bundle_remove(bundle_id=bundle_id, storage=storages["evidence"], at=timezone.now())


@shared_task(name="governance.tasks.evidence_at_end")
def evidence_at_end_task(subject_id: str) -> None:
    with every_tenant():
        at_end.evidence_at_end(subject_id=UUID(subject_id), at=timezone.now())


@shared_task(name="governance.tasks.evidence_sweep")
def evidence_sweep_task() -> None:
    """Requests bundles of attempts and runs that ended, where the wake-up was lost."""
    with every_tenant():
        at_end.evidence_sweep(at=timezone.now())


@shared_task(name="governance.tasks.evidence_remove")
def evidence_remove_task(bundle_id: str) -> None:
    with every_tenant():
        bundle_remove(bundle_id=UUID(bundle_id), storage=storages["evidence"], at=timezone.now())
