"""A contract executes nothing until all ten owners approved it, and closes when one of them revokes."""

import pytest
from django.db import DatabaseError, connection, transaction

from governance.contracts.errors import DocumentInvalid, NotAnOwner, ReadinessIncomplete
from governance.contracts.models import Contract, ContractDocument, ReadinessDecision
from governance.contracts.rules.documents import AREAS
from governance.contracts.selectors import readiness_board
from governance.contracts.services.contracts import (
    contract_change,
    contract_new_version,
    contract_open,
    contract_retire,
    contract_suspend,
)
from governance.contracts.services.readiness import readiness_decide
from governance.contracts.states import CONTRACT_MOVES, ContractState, ReadinessVerdict
from governance.ledger.models import LedgerEntry
from governance.people.services.people import person_role_take
from governance.violations.errors import OwnWork, RecordImmutable
from governance.violations.models import GovernanceViolation
from reasoncodes.base.actors import SYSTEM
from reasoncodes.base.errors import InvalidInput, WrongState
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.governed import AT, approve, make_contract, make_policy, open_contract


@pytest.fixture(autouse=True)
def all_tenants(db: None):  # type: ignore[no-untyped-def]
    with every_tenant():
        yield


def statuses(contract: Contract) -> dict[str, str]:
    return {row.area: row.status for row in readiness_board(contract=contract)}


def test_a_new_contract_is_a_draft_with_ten_safe_documents(cast: Cast) -> None:
    contract = make_contract(cast)
    assert contract.state == "draft"
    assert statuses(contract) == {area.name: "pending" for area in AREAS}
    assert all(
        row.document == area.default for row, area in zip(readiness_board(contract=contract), AREAS, strict=True)
    )


@pytest.mark.parametrize("left_out", [area.name for area in AREAS])
def test_nine_approvals_do_not_open_a_contract(cast: Cast, left_out: str) -> None:
    contract = make_contract(cast)
    approve(cast, contract, *[area.name for area in AREAS if area.name != left_out])
    with pytest.raises(ReadinessIncomplete) as refusal:
        contract_open(actor=SYSTEM, at=AT, contract_id=contract.id)
    assert [error.pointer for error in refusal.value.errors] == [f"/{left_out}"]


def test_ten_approvals_open_it_and_the_snapshot_is_kept(cast: Cast) -> None:
    contract = open_contract(cast)
    assert contract.state == "open"
    assert len(contract.snapshot_sha256) == 64


@pytest.mark.parametrize("area", [area.name for area in AREAS])
def test_revoking_one_area_closes_the_contract_in_the_same_transaction(cast: Cast, area: str) -> None:
    contract = open_contract(cast)
    approve(cast, contract, area, verdict=ReadinessVerdict.REVOKE)
    contract = Contract.objects.get(id=contract.id)
    assert (contract.state, contract.closed_reason_code) == ("suspended", "readiness_revoked")
    with pytest.raises(ReadinessIncomplete):
        contract_open(actor=SYSTEM, at=AT, contract_id=contract.id)
    approve(cast, contract, area)
    assert contract_open(actor=SYSTEM, at=AT, contract_id=contract.id).state == "open"


def test_only_the_owning_group_decides_and_the_attempt_is_on_record(cast: Cast) -> None:
    contract = make_contract(cast)
    for person in (cast.operator, cast.auditor, cast.person("priya", "owner:privacy")):
        with pytest.raises(NotAnOwner):
            readiness_decide(
                actor=cast.actor(person, [cast.organization]),
                at=AT,
                contract_id=contract.id,
                area="retry_and_replay",
                verdict=ReadinessVerdict.APPROVE,
                rationale="fine",
            )
    assert GovernanceViolation.objects.filter(kind="unauthorized_decision", subject_id=contract.id).count() == 3
    assert LedgerEntry.objects.filter(action="violation.recorded").count() == 3


def test_an_owner_who_lost_the_role_a_moment_ago_decides_nothing(cast: Cast) -> None:
    contract = make_contract(cast)
    priya = cast.person("priya", "owner:privacy")
    actor = cast.actor(priya, [cast.organization])
    person_role_take(actor=SYSTEM, at=AT, user=priya, organization=cast.organization, role="owner:privacy")
    with pytest.raises(NotAnOwner):
        readiness_decide(
            actor=actor,
            at=AT,
            contract_id=contract.id,
            area="metadata_boundary",
            verdict=ReadinessVerdict.APPROVE,
            rationale="fine",
        )


def test_nobody_approves_a_document_that_they_wrote(cast: Cast) -> None:
    priya = cast.person("priya", "owner:privacy", "operator", exception=True)
    actor = cast.actor(priya, [cast.organization])
    contract = make_contract(cast)
    document = ContractDocument.objects.get(contract=contract, area="metadata_boundary").document
    contract_change(
        actor=actor, at=AT, contract_id=contract.id, documents={"metadata_boundary": document | {"max_bytes": 1024}}
    )
    with pytest.raises(OwnWork):
        readiness_decide(
            actor=actor,
            at=AT,
            contract_id=contract.id,
            area="metadata_boundary",
            verdict=ReadinessVerdict.APPROVE,
            rationale="fine",
        )
    approve(cast, contract, "metadata_boundary")
    assert statuses(contract)["metadata_boundary"] == "approved"


def test_a_changed_document_makes_its_approval_stale_and_no_other(cast: Cast) -> None:
    contract = make_contract(cast)
    approve(cast, contract)
    document = ContractDocument.objects.get(contract=contract, area="retry_and_replay").document
    contract_change(
        actor=SYSTEM, at=AT, contract_id=contract.id, documents={"retry_and_replay": document | {"window_seconds": 60}}
    )
    found = statuses(contract)
    assert found.pop("retry_and_replay") == "stale"
    assert set(found.values()) == {"approved"}


def test_an_open_contract_is_immutable_in_the_service_and_in_the_database(cast: Cast) -> None:
    contract = open_contract(cast)
    with pytest.raises(RecordImmutable):
        contract_change(actor=SYSTEM, at=AT, contract_id=contract.id, core={"effect": "none"})
    for statement in (
        "UPDATE governance_contract SET effect = 'none'",
        "UPDATE governance_contract SET snapshot_sha256 = 'x'",
        "DELETE FROM governance_contract",
        "UPDATE governance_contractdocument SET document = '{}'",
        "DELETE FROM governance_contractdocument",
        "INSERT INTO governance_contractdocument (id, contract_id, area, document, sha256, updated_at) "
        "SELECT gen_random_uuid(), id, 'x', '{}', '', now() FROM governance_contract",
    ):
        with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(statement)


def test_the_database_allows_exactly_the_designed_moves(cast: Cast) -> None:
    states = [state.value for state in ContractState]
    for source in states:
        for target in states:
            legal = source == target or (source, target) in CONTRACT_MOVES
            with transaction.atomic(), connection.cursor() as cursor:
                contract = make_contract(cast, slug=f"from-{source}-to-{target}")
                cursor.execute("UPDATE governance_contract SET snapshot_sha256 = 'x' WHERE id = %s", [contract.id])
                for step in {"draft": [], "suspended": ["open", "suspended"]}.get(source, [source]):
                    cursor.execute("UPDATE governance_contract SET state = %s WHERE id = %s", [step, contract.id])
                try:
                    with transaction.atomic():
                        cursor.execute("UPDATE governance_contract SET state = %s WHERE id = %s", [target, contract.id])
                    moved = True
                except DatabaseError:
                    moved = False
            assert moved == legal, (source, target)


def test_a_new_version_carries_over_what_did_not_change(cast: Cast) -> None:
    old = open_contract(cast)
    new = contract_new_version(actor=SYSTEM, at=AT, contract_id=old.id)
    assert (new.version, new.state) == (2, "draft")
    assert set(statuses(new).values()) == {"approved"}
    assert ReadinessDecision.objects.filter(contract=new, carried_from__isnull=False).count() == 10
    document = ContractDocument.objects.get(contract=new, area="metadata_boundary").document
    contract_change(
        actor=SYSTEM, at=AT, contract_id=new.id, documents={"metadata_boundary": document | {"max_bytes": 512}}
    )
    assert statuses(new)["metadata_boundary"] == "stale"
    with pytest.raises(WrongState):
        contract_new_version(actor=SYSTEM, at=AT, contract_id=old.id)


def test_a_change_of_effect_does_not_slip_past_the_owners_on_carried_approvals(cast: Cast) -> None:
    old = open_contract(cast, effect="none")
    new = contract_new_version(actor=SYSTEM, at=AT, contract_id=old.id)
    new = contract_change(actor=SYSTEM, at=AT, contract_id=new.id, core={"effect": "once"})
    assert set(statuses(new).values()) == {"stale"}


def test_invalid_documents_are_refused_with_every_place(cast: Cast) -> None:
    with pytest.raises(DocumentInvalid) as refusal:
        make_contract(cast, documents={"retry_and_replay": {"automatic_retries": "always"}, "metadata_boundary": []})
    pointers = {error.pointer.split("/")[1] for error in refusal.value.errors}
    assert pointers >= {"retry_and_replay", "metadata_boundary"}


def test_suspending_and_retiring_need_a_reason_code_that_exists(cast: Cast) -> None:
    contract = open_contract(cast)
    with pytest.raises(InvalidInput):
        contract_suspend(actor=SYSTEM, at=AT, contract_id=contract.id, reason_code="because")
    contract_suspend(actor=SYSTEM, at=AT, contract_id=contract.id, reason_code="planned_maintenance")
    assert contract_open(actor=SYSTEM, at=AT, contract_id=contract.id).state == "open"
    contract_retire(actor=SYSTEM, at=AT, contract_id=contract.id, reason_code="planned_maintenance")
    with pytest.raises(WrongState):
        contract_open(actor=SYSTEM, at=AT, contract_id=contract.id)


def test_every_move_is_on_the_ledger(cast: Cast) -> None:
    contract = open_contract(cast)
    contract_suspend(actor=SYSTEM, at=AT, contract_id=contract.id, reason_code="planned_maintenance")
    actions = LedgerEntry.objects.filter(subject_id=contract.id).order_by("id").values_list("action", flat=True)
    assert list(actions) == ["contract.created", *["readiness.approved"] * 10, "contract.opened", "contract.suspended"]


def test_policies_publish_one_active_version_and_keep_the_old_snapshot(cast: Cast) -> None:
    first = make_policy(cast)
    second = make_policy(cast)
    first.refresh_from_db()
    assert (first.state, second.state, second.version) == ("archived", "active", 2)


def test_effect_and_policy_cannot_change_behind_owners_who_approved(cast: Cast) -> None:
    contract = make_contract(cast)
    approve(cast, contract, "regional_compliance")
    actor = cast.actor(cast.operator, [cast.organization])
    with every_tenant():
        with pytest.raises(WrongState) as caught:
            contract_change(actor=actor, at=AT, contract_id=contract.id, core={"policy_slug": "another"})
        assert [error.pointer for error in caught.value.errors] == ["/regional_compliance"]
        contract_change(actor=actor, at=AT, contract_id=contract.id, core={"title": "Another title"})
        approve(cast, contract, "regional_compliance", verdict=ReadinessVerdict.REVOKE)
        contract_change(actor=actor, at=AT, contract_id=contract.id, core={"policy_slug": "another"})
