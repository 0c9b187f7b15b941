"""What is erased by order is erased from the bundles that hold it, and nothing else is."""

from typing import Any
from uuid import UUID

import pytest
from django.core.files.storage import storages
from django.utils import timezone

from governance.evidence.models import EvidenceBundle
from governance.evidence.services.bundles import evidence_remove
from governance.evidence.tasks import evidence_resume_task
from governance.ledger.models import LedgerEntry
from governance.sealing.models import ReadAccess
from reasoncodes.base.tenancy import every_tenant
from sdk import holdpoint_verify as verifier
from tests.cast import Cast
from tests.governance.evidence.support import build, built, fresh, request, stored
from tests.governance.evidence.test_doors import content
from tests.governance.ledger.sealing import seal_all
from tests.governance.retention.support import RECENT, Clinic, work

pytestmark = pytest.mark.django_db(transaction=True)


class Away:
    """A storage that does not answer."""

    def delete(self, name: str) -> None:
        raise OSError(name)


@pytest.fixture
def clinic(cast: Cast) -> Clinic:
    return Clinic(cast)


def remove(bundle: EvidenceBundle, storage: Any = None) -> bool:
    with every_tenant():
        return evidence_remove(bundle_id=bundle.id, storage=storage or storages["evidence"], at=timezone.now())


def actions(bundle: EvidenceBundle) -> list[str]:
    with every_tenant():
        return list(LedgerEntry.objects.filter(subject_id=bundle.id).order_by("id").values_list("action", flat=True))


def test_a_bundle_is_erased_with_what_it_is_about_and_another_is_left(clinic: Clinic) -> None:
    gone, stays = clinic.denied(1), clinic.denied(2, moment=RECENT)
    bundle, other = built(clinic.cast, gone), built(clinic.cast, stays)
    work(clinic.order())
    found = fresh(bundle.id)
    assert (found.state, found.erased_at is not None, actions(bundle)[-1]) == ("erased", True, "evidence.erased")
    assert remove(bundle)
    assert not storages["evidence"].exists(bundle.storage_name)
    assert fresh(bundle.id).removed_at is not None
    assert fresh(other.id).state == "ready"
    assert verifier.verify(stored(other)).valid
    again = built(clinic.cast, gone)
    report = verifier.verify(stored(again))
    assert (again.id != bundle.id, report.faults) == (True, [])
    assert any("the payload is erased" in line for line in report.checked)


@pytest.mark.parametrize("state", ["requested", "building"])
def test_one_that_is_being_made_is_erased_and_never_becomes_ready(clinic: Clinic, state: str) -> None:
    bundle = request(clinic.cast, clinic.denied(1))
    if state == "building":
        bundle = build(bundle.id)
    assert bundle.state == state
    work(clinic.order())
    seal_all()
    assert (build(bundle.id).state, fresh(bundle.id).draft) == ("erased", None)


def test_a_file_that_cannot_be_removed_now_is_removed_by_the_tick(clinic: Clinic) -> None:
    bundle = built(clinic.cast, clinic.denied(1))
    work(clinic.order())
    assert not remove(bundle, storage=Away())
    assert storages["evidence"].exists(bundle.storage_name)
    evidence_resume_task()
    assert storages["evidence"].exists(bundle.storage_name), "its time has not come"
    with every_tenant():
        EvidenceBundle.objects.filter(id=bundle.id).update(resume_at=timezone.now())
    evidence_resume_task()
    assert not storages["evidence"].exists(bundle.storage_name)


def test_the_doors_say_that_it_was_erased_and_who_took_a_copy_before(clinic: Clinic) -> None:
    bundle = built(clinic.cast, clinic.denied(1))
    reader = clinic.cast.api("ledger:read")
    address = f"/api/v1/evidence/{bundle.id}/download"
    assert content(reader.get(address, headers={"X-Purpose": "audit-7"})) == stored(bundle)
    with every_tenant():
        taken = ReadAccess.objects.get(subject_id=bundle.id)
    assert (taken.subject_kind, taken.purpose, taken.actor_kind) == ("evidence_bundle", "audit-7", "service")
    work(clinic.order())
    answer = reader.get(address)
    assert (answer.status_code, answer.json()["type"].rsplit("/")[-1]) == (410, "evidence-erased")
    assert reader.get(f"/api/v1/evidence/{bundle.id}").json()["state"] == "erased"
    page = clinic.cast.session(clinic.cast.auditor).get(f"/admin/governance/evidencebundle/{bundle.id}/change/")
    assert "was erased by order" in page.content.decode()
    with every_tenant():
        assert ReadAccess.objects.filter(subject_id=UUID(str(bundle.id)), door="console").count() == 1
