"""The vocabulary: what the program emits exists and stays active; an organization's own word goes first."""

from typing import Any
from uuid import UUID

import pytest
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from governance.ledger.models import LedgerEntry
from governance.people.services.accounts import service_account_suspend
from reasoncodes.base.actors import SYSTEM
from reasoncodes.base.errors import AlreadyExists, InvalidInput, NotFound, Refused
from reasoncodes.base.tenancy import every_tenant, tenant_scope
from reasoncodes.codes import EMITTED, SYSTEM_CODES
from reasoncodes.models import ReasonCode
from reasoncodes.selectors import reason_code_require, reason_code_resolve, reason_code_usage
from reasoncodes.services import (
    reason_code_create,
    reason_code_deactivate,
    reason_code_update,
    system_codes_synchronise,
)
from tests.cast import Cast
from tests.factories import ServiceAccountFactory
from tests.governance.support import in_parallel, row_counts

PROMISED = [
    "invalid_input",
    "enforcement_exception",
    "attempt_creation_disabled",
    "shutdown_engaged",
    "operator_shutdown",
    "policy_denied",
    "no_rule_matched",
    "review_required",
    "review_rejected",
    "review_expired",
    "cancelled_by_caller",
    "rate_limited",
    "concurrency_limit",
    "misuse_suspended",
    "metadata_boundary",
    "region_unset",
    "residency_violation",
    "adapter_failed",
    "outcome_unknown",
    "lease_lost",
    "step_timed_out",
    "workflow_deadline_passed",
    "output_contract_drift",
    "consent_missing",
    "insufficient_images",
    "ai_review_failed",
    "image_quality",
    "superseded",
    "record_unavailable",
]


def create(organization_id: UUID, **changes: Any) -> ReasonCode:
    fields: dict[str, Any] = {"scope": "human_decline", "code": "tired", "label": "Tired"} | changes
    return reason_code_create(actor=SYSTEM, at=timezone.now(), organization_id=organization_id, **fields)


def change(row: ReasonCode, **changes: Any) -> ReasonCode:
    return reason_code_update(actor=SYSTEM, at=timezone.now(), reason_code_id=row.id, changes=changes)


@pytest.mark.parametrize("code", PROMISED)
def test_a_code_that_callers_may_rely_on_is_there_and_active(db: None, code: str) -> None:
    with tenant_scope([]):
        rows = ReasonCode.objects.filter(code=code, organization=None)
        assert rows
        assert all(row.active and row.emitted and row.label and row.description for row in rows)


def test_every_code_of_the_program_is_seeded_exactly_once(db: None) -> None:
    with tenant_scope([]):
        seeded = list(ReasonCode.objects.values_list("scope", "code"))
    assert sorted(seeded) == sorted((code.scope.value, code.code) for code in SYSTEM_CODES)


def test_synchronising_again_corrects_wording_and_adds_nothing(db: None) -> None:
    before = row_counts()
    with every_tenant():
        ReasonCode.objects.filter(code="policy_denied", scope="denial").update(label="Something else")
        system_codes_synchronise()
        assert ReasonCode.objects.get(code="policy_denied", scope="denial").label == "Denied by policy"
    assert row_counts() == before


def test_a_starter_that_was_deactivated_stays_so(db: None) -> None:
    with every_tenant():
        ReasonCode.objects.filter(code="rehearsal").update(active=False)
        system_codes_synchronise()
        assert not ReasonCode.objects.get(scope="intervention", code="rehearsal").active


def test_the_organizations_own_row_wins_over_the_systems(cast: Cast) -> None:
    with every_tenant():
        own = create(cast.organization.id, scope="denial", code="policy_denied", label="House rules say no")
        mine = reason_code_resolve(organization_id=cast.organization.id, scope="denial", code="policy_denied")
        theirs = reason_code_resolve(organization_id=cast.other.id, scope="denial", code="policy_denied")
        nobodys = reason_code_resolve(organization_id=None, scope="denial", code="policy_denied")
    assert mine == own
    assert theirs == nobodys
    assert theirs is not None
    assert theirs.organization_id is None


def test_an_inactive_override_hides_the_systems_starter_for_that_organization_only(cast: Cast) -> None:
    with every_tenant():
        own = create(cast.organization.id, scope="intervention", code="rehearsal", label="No drills here")
        reason_code_deactivate(actor=SYSTEM, at=timezone.now(), reason_code_id=own.id)
        assert reason_code_resolve(organization_id=cast.organization.id, scope="intervention", code="rehearsal") is None
        assert reason_code_resolve(organization_id=cast.other.id, scope="intervention", code="rehearsal")


def test_a_code_means_something_only_in_its_scope(cast: Cast) -> None:
    with every_tenant():
        assert reason_code_resolve(organization_id=None, scope="denial", code="not_my_speciality") is None
        assert reason_code_resolve(organization_id=None, scope="human_decline", code="not_my_speciality")


def test_a_chosen_code_must_exist_and_the_refusal_lists_those_that_do(cast: Cast) -> None:
    with tenant_scope([cast.organization.id]), pytest.raises(InvalidInput) as caught:
        reason_code_require(organization_id=cast.organization.id, scope="human_decline", code="zx81marker")
    assert "conflict_of_interest" in caught.value.errors[0].message
    assert "zx81marker" not in str(caught.value.errors) + caught.value.detail


@pytest.mark.parametrize(("note", "accepted"), [("", False), ("   ", False), ("saw it twice", True)])
def test_a_code_that_requires_a_note_is_refused_without_one(cast: Cast, note: str, accepted: bool) -> None:
    def require() -> ReasonCode:
        return reason_code_require(
            organization_id=cast.organization.id, scope="human_decline", code="insufficient_information", note=note
        )

    with tenant_scope([cast.organization.id]):
        if accepted:
            assert require().requires_note
        else:
            with pytest.raises(InvalidInput):
                require()


@pytest.mark.parametrize(("scope", "code"), sorted(EMITTED)[:3])
def test_what_the_program_emits_cannot_be_deactivated_by_anybody(cast: Cast, scope: str, code: str) -> None:
    with every_tenant():
        own = create(cast.organization.id, scope=scope, code=code)
        assert own.emitted
        with pytest.raises(Refused):
            reason_code_deactivate(actor=SYSTEM, at=timezone.now(), reason_code_id=own.id)
        with pytest.raises(Refused):
            change(own, active=False)
    with connection.cursor() as cursor:
        for condition in ("organization_id IS NULL", "organization_id IS NOT NULL"):
            with pytest.raises(IntegrityError, match="reason_code_emitted_stays_active"), transaction.atomic():
                cursor.execute(
                    f"UPDATE reasoncodes_reasoncode SET active = false WHERE {condition} AND code = %s",  # noqa: S608
                    [code],
                )


def test_the_systems_rows_are_not_for_anybody_to_change(cast: Cast) -> None:
    with every_tenant():
        system = ReasonCode.objects.get(organization=None, scope="intervention", code="rehearsal")
        for act in (
            lambda: change(system, label="x"),
            lambda: reason_code_deactivate(actor=SYSTEM, at=timezone.now(), reason_code_id=system.id),
        ):
            with pytest.raises(Refused):
                act()


def test_every_change_is_on_the_ledger_and_no_change_is_not(cast: Cast) -> None:
    with every_tenant():
        row = create(cast.organization.id)
        change(row, label="Very tired", requires_note=True)
        change(row, label="Very tired", applicable_step_kinds=[])  # as it is already
        change(row)
        for _ in range(2):
            reason_code_deactivate(actor=SYSTEM, at=timezone.now(), reason_code_id=row.id)
        change(row, active=True)
        entries = LedgerEntry.objects.filter(subject_id=row.id).order_by("id")
        assert [(entry.action, entry.payload["fields"], entry.payload["active"]) for entry in entries] == [
            ("reason_code.created", [], True),
            ("reason_code.changed", ["label", "requires_note"], True),
            ("reason_code.deactivated", [], False),
            ("reason_code.changed", ["active"], True),
        ]
        assert {entry.organization_id for entry in entries} == {cast.organization.id}


def test_scope_and_code_never_change(cast: Cast) -> None:
    with every_tenant():
        row = create(cast.organization.id)
        for field in ("scope", "code", "organization_id", "emitted"):
            with pytest.raises(ValueError, match="not changeable"):
                change(row, **{field: "x"})


def test_a_stranger_finds_nothing_to_change(cast: Cast) -> None:
    with every_tenant():
        row = create(cast.organization.id)
    stranger = cast.actor(cast.other_operator, [cast.other])
    for scope in (tenant_scope([cast.other.id]), every_tenant()):
        with scope:
            with pytest.raises(NotFound):
                reason_code_update(actor=stranger, at=timezone.now(), reason_code_id=row.id, changes={"label": "x"})
            with pytest.raises(NotFound):
                reason_code_deactivate(actor=stranger, at=timezone.now(), reason_code_id=row.id)
            with pytest.raises(NotFound):
                reason_code_create(
                    actor=stranger,
                    at=timezone.now(),
                    organization_id=cast.organization.id,
                    scope="halt",
                    code="mine",
                    label="Mine",
                )


def test_the_same_code_twice_is_refused_and_in_another_scope_or_organization_it_is_not(cast: Cast) -> None:
    with every_tenant():
        create(cast.organization.id)
        with pytest.raises(AlreadyExists):
            create(cast.organization.id)
        create(cast.organization.id, scope="halt")
        create(cast.other.id)


def test_usage_is_what_the_organizations_own_record_names(cast: Cast) -> None:
    for organization in (cast.organization, cast.organization, cast.other):
        account = ServiceAccountFactory(organization=organization)
        with every_tenant():
            service_account_suspend(
                actor=SYSTEM, at=timezone.now(), service_account_id=account.id, reason_code="rehearsal"
            )
    with tenant_scope([cast.organization.id]):
        mine = reason_code_usage(organization_id=cast.organization.id, codes=["rehearsal", "superseded"])
        assert mine == {"rehearsal": 2, "superseded": 0}
        assert reason_code_usage(organization_id=None, codes=["rehearsal"]) == {"rehearsal": 2}
        assert reason_code_usage(organization_id=cast.other.id, codes=["rehearsal"]) == {"rehearsal": 0}


@pytest.mark.django_db(transaction=True)
def test_two_creates_at_once_make_one_row_one_entry_and_one_refusal() -> None:
    organization_id = Cast().organization.id

    def work() -> str:
        try:
            with every_tenant():
                create(organization_id)
        except AlreadyExists:
            return "refused"
        return "created"

    assert sorted(in_parallel(work, work)) == ["created", "refused"]
    with every_tenant():
        assert ReasonCode.objects.filter(code="tired").count() == 1
        assert LedgerEntry.objects.filter(action="reason_code.created").count() == 1
