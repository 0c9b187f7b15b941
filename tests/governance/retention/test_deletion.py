"""Deletion: asked for by one, decided by another, with lawful reasons; done, nothing means anything any more."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.utils import timezone

from governance.ledger.models import LedgerEntry
from governance.people.models import PersonReference, User
from governance.people.selectors.people import people_behind
from governance.people.services.people import person_deactivate
from governance.retention.errors import ErasureBlocked
from governance.retention.models import ContextReference, DeletionRequest, LegalHold
from governance.retention.selectors.retention import requests_overdue
from governance.retention.services.deletion import deletion_accept, deletion_refuse, deletion_request
from governance.retention.services.legal_hold import legal_hold_release
from governance.sealing.services.verify import ledger_verify
from governance.violations.errors import SecondPersonNeeded
from governance.violations.models import GovernanceViolation
from reasoncodes.base.actors import SYSTEM
from reasoncodes.base.errors import AlreadyExists, InvalidInput, NotFound, WrongState
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.governance.ledger.sealing import seal_all
from tests.governance.retention.support import LONG_AGO, RECENT, Clinic, actions, at_time, attempt, work
from tests.governance.support import everything_stored


def request(clinic: Clinic, reference: str = "ctx-0001", **changes: Any) -> DeletionRequest:
    facts = {"actor": clinic.operator, "at": timezone.now(), "organization": clinic.organization}
    with every_tenant():
        return deletion_request(**facts | {"context_ref": reference} | changes)  # type: ignore[arg-type]


def accept(clinic: Clinic, row: DeletionRequest, **changes: Any) -> DeletionRequest:
    facts = {"actor": clinic.second, "at": timezone.now(), "reason_code": "data_subject_request"}
    with every_tenant():
        return deletion_accept(deletion_id=row.id, **facts | changes)  # type: ignore[arg-type]


def refuse(clinic: Clinic, row: DeletionRequest, code: str, **changes: Any) -> DeletionRequest:
    facts = {"actor": clinic.second, "at": timezone.now(), "reason_code": code}
    with every_tenant():
        return deletion_refuse(deletion_id=row.id, **facts | changes)  # type: ignore[arg-type]


def fresh(row: DeletionRequest) -> DeletionRequest:
    with every_tenant():
        return DeletionRequest.objects.get(id=row.id)


def test_the_due_date_is_the_regions(clinic: Clinic) -> None:
    row = request(clinic)
    assert row.due_at - row.requested_at == timedelta(days=45)


def test_accepted_it_destroys_reference_and_salt_and_everything_that_named_it(clinic: Clinic) -> None:
    first, other = clinic.denied(1), clinic.denied(2)
    row = accept(clinic, request(clinic))
    assert row.order is not None
    work(row.order)
    assert fresh(row).state == "done"
    stored = everything_stored()
    assert "ctx-0001" not in stored
    assert "ctx-0002" in stored
    assert attempt(first).erased_at
    assert attempt(other).erased_at is None
    with every_tenant():
        assert not ContextReference.objects.exists()
    assert actions("deletion.") == ["deletion.requested", "deletion.accepted", "deletion.done"]


@pytest.mark.django_db(transaction=True)
def test_proofs_of_all_entries_hold_afterwards() -> None:
    clinic = Clinic(Cast())
    clinic.denied(1), clinic.denied(2)
    seal_all()
    row = accept(clinic, request(clinic))
    assert row.order is not None
    work(row.order)
    seal_all()
    with every_tenant():
        verified = ledger_verify()
    assert (verified.faults, verified.erased) == (0, 1)


def test_the_ledger_names_the_reference_by_a_commitment_only(clinic: Clinic) -> None:
    row = request(clinic)
    with every_tenant():
        entry = LedgerEntry.objects.get(action="deletion.requested")
    assert entry.payload["commitment"] == row.commitment
    assert "ctx-0001" not in str(entry.payload)


def test_retention_and_holds_stand_in_the_way_and_are_named(clinic: Clinic) -> None:
    clinic.denied(1, moment=RECENT)
    row = request(clinic)
    with pytest.raises(ErasureBlocked) as found:
        accept(clinic, row)
    assert [(error.rule, error.message) for error in found.value.errors] == [("retention_not_over", "1 of 1")]
    clinic.hold("context", "ctx-0001")
    with pytest.raises(ErasureBlocked) as found:
        accept(clinic, row)
    assert [error.rule for error in found.value.errors] == ["legal_hold"]
    assert refuse(clinic, row, "legal_hold").state == "refused"


@pytest.mark.parametrize("code", ["legal_hold", "quarantine_unresolved", "not_finished", "nothing_to_erase"])
def test_a_reason_that_is_not_so_is_no_reason(clinic: Clinic, code: str) -> None:
    clinic.denied(1, moment=RECENT)
    row = request(clinic)
    with pytest.raises(InvalidInput):
        refuse(clinic, row, code)
    assert fresh(row).state == "requested"


@pytest.mark.parametrize("code", ["policy_denied", "because", ""])
def test_only_lawful_reasons_refuse(clinic: Clinic, code: str) -> None:
    with pytest.raises(InvalidInput):
        refuse(clinic, request(clinic), code)


@pytest.mark.parametrize("code", ["statutory_duty", "request_not_verified"])
def test_a_judgement_needs_a_note(clinic: Clinic, code: str) -> None:
    row = request(clinic)
    with pytest.raises(InvalidInput):
        refuse(clinic, row, code)
    assert refuse(clinic, row, code, note="See letter 17").state == "refused"


def test_whoever_asked_does_not_decide(clinic: Clinic) -> None:
    row = request(clinic)
    for decide in (
        lambda: accept(clinic, row, actor=clinic.operator),
        lambda: refuse(clinic, row, "nothing_to_erase", actor=clinic.operator),
    ):
        with pytest.raises(SecondPersonNeeded):
            decide()
    with every_tenant():
        kinds = list(GovernanceViolation.objects.values_list("kind", flat=True))
    assert kinds == ["second_person_missing"] * 2
    assert fresh(row).state == "requested"


def test_it_is_decided_once(clinic: Clinic) -> None:
    row = request(clinic)
    refuse(clinic, row, "nothing_to_erase")
    with pytest.raises(WrongState):
        accept(clinic, row)


def test_one_open_request_about_the_same(clinic: Clinic) -> None:
    request(clinic)
    with pytest.raises(AlreadyExists):
        request(clinic)


def test_a_hold_that_came_first_after_all_refuses_the_accepted_request(clinic: Clinic) -> None:
    first = clinic.denied(1)
    row = accept(clinic, request(clinic))
    clinic.hold()
    assert row.order is not None
    work(row.order)
    assert (fresh(row).state, fresh(row).reason_code) == ("refused", "legal_hold")
    assert attempt(first).patient_context_ref == "ctx-0001"
    with every_tenant():
        assert ContextReference.objects.count() == 1


def test_overdue_requests_are_counted(clinic: Clinic) -> None:
    row = request(clinic)
    with every_tenant():
        assert requests_overdue(at=row.due_at - timedelta(seconds=1))["deletion"] == 0
        assert requests_overdue(at=row.due_at)["deletion"] == 1


# People


def leaver(clinic: Clinic) -> User:
    """Somebody who acted long ago and left."""
    with at_time(LONG_AGO):
        user = clinic.cast.person("lena", "operator")
        clinic.hold("contract", "never", actor=clinic.cast.actor(user, [clinic.organization]))
        with every_tenant():
            hold = LegalHold.objects.get()
            legal_hold_release(actor=clinic.second, at=timezone.now(), hold_id=hold.id, reason_code="hold_ended")
    return user


def leave(clinic: Clinic, user: User) -> None:
    with every_tenant():
        person_deactivate(actor=clinic.operator, at=timezone.now(), user_id=user.id, reason_code="person_left")


def test_a_person_is_forgotten_only_when_they_left_and_retention_is_over(clinic: Clinic) -> None:
    user = leaver(clinic)
    row = request(clinic, "", person_id=user.id)
    with pytest.raises(ErasureBlocked) as found:
        accept(clinic, row)
    assert [error.rule for error in found.value.errors] == ["not_finished"]
    leave(clinic, user)
    accepted = accept(clinic, row)
    assert accepted.order is not None
    work(accepted.order)
    assert fresh(row).state == "done"
    user.refresh_from_db()
    assert (user.username, user.is_active, user.email) == (f"erased-{user.id}", False, "")
    assert not PersonReference.objects.filter(user=user).exists()
    assert people_behind(commitments={row.commitment}) == {}
    with every_tenant():
        assert LedgerEntry.objects.filter(actor_ref=row.commitment).exists()


def test_somebody_who_acted_lately_is_kept(clinic: Clinic) -> None:
    user = clinic.cast.person("lena", "operator")
    clinic.hold("contract", "never", actor=clinic.cast.actor(user, [clinic.organization]))
    row = request(clinic, "", person_id=user.id)
    leave(clinic, user)
    with pytest.raises(ErasureBlocked) as found:
        accept(clinic, row)
    assert [error.rule for error in found.value.errors] == ["retention_not_over"]


def test_a_person_of_several_organizations_is_not_one_organizations_to_forget(clinic: Clinic) -> None:
    user = clinic.cast.person("lena", "operator")
    clinic.cast.person("lena", "operator", organization=clinic.cast.other)
    with pytest.raises(NotFound):
        request(clinic, "", person_id=user.id)
    with pytest.raises(NotFound), every_tenant():
        person_deactivate(actor=clinic.operator, at=timezone.now(), user_id=user.id, reason_code="person_left")


@pytest.mark.parametrize("facts", [{"context_ref": "", "person_id": None}, {"person_id": UUID(int=1)}])
def test_it_is_about_one_thing(clinic: Clinic, facts: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        request(clinic, **{"reference": "ctx-0001"} | facts if "context_ref" not in facts else facts)


def test_leaving_ends_sessions_and_roles(clinic: Clinic) -> None:
    user = clinic.cast.person("lena", "operator")
    session = clinic.cast.session(user)
    assert session.get("/api/v1/reason-codes").status_code == 200
    leave(clinic, user)
    assert session.get("/api/v1/reason-codes").status_code == 401
    user.refresh_from_db()
    assert (user.is_active, user.groups.count(), user.has_usable_password()) == (False, 0, False)
    assert actions("person.deactivated") == ["person.deactivated"]
    with every_tenant(), pytest.raises(WrongState):
        person_deactivate(actor=SYSTEM, at=timezone.now(), user_id=user.id, reason_code="person_left")
