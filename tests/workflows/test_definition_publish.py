"""Publishing: judged, alone in its place, frozen under its hash, and governed by a contract that its owners open."""

from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any
from uuid import UUID

import pytest
from django.db import DatabaseError, IntegrityError, connection, transaction

from governance.boundary.rules import BoundaryPolicy, inspect_metadata
from governance.contracts.models import Contract, ContractDocument
from governance.contracts.rules.documents import AREAS
from governance.contracts.services.contracts import (
    contract_change,
    contract_create,
    contract_new_version,
    contract_open,
)
from governance.contracts.states import ReadinessVerdict
from governance.enforcement.models import Snapshot, snapshot_load
from governance.ledger.models import LedgerEntry
from governance.policies.models import Policy
from governance.policies.services import policy_archive
from reasoncodes.base.errors import AlreadyExists, InvalidInput
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.governance.decide.support import actions, problem
from tests.governance.support import row_counts
from tests.governed import AT, approve, make_contract, make_policy
from tests.workflows.definition_support import URL, document, draft, product, publish, published, stored
from workflows.definitions.errors import DefinitionInvalid
from workflows.definitions.models import WorkflowDefinition
from workflows.definitions.services.contract import PublishTerms
from workflows.definitions.services.document import snapshot_document
from workflows.kinds import registry

TEN = [area.name for area in AREAS]


@pytest.fixture(autouse=True)
def all_tenants(db: None) -> Iterator[None]:
    with every_tenant():
        yield


def opened(cast: Cast, **kwargs: Any) -> WorkflowDefinition:
    """Published, approved by the ten owners, and its contract opened by Alice."""
    definition = published(cast, approved=True, **kwargs)
    assert definition.contract_id is not None
    actor = cast.actor(cast.operator, [cast.organization])
    contract_open(actor=actor, at=AT, contract_id=definition.contract_id)
    return stored(definition)


def documents(contract: Contract) -> dict[str, Any]:
    return {row.area: row.document for row in ContractDocument.objects.filter(contract=contract)}


# -- its place --------------------------------------------------------------------------------------------------------
def test_it_takes_the_place_of_the_active_one_of_its_product_and_of_no_other(cast: Cast) -> None:
    derm, nails = product(cast), product(cast, "nails")
    whole, other = published(cast, slug="whole"), published(cast, slug="nails", of=nails)
    first = published(cast, of=derm)
    found = publish(cast, draft(cast, of=derm))
    assert found.archived == first
    assert {stored(row).state for row in (whole, other, found.definition)} == {"active"}
    assert stored(first).state == "archived"
    assert actions(first.id) == ["definition.created", "definition.published", "definition.archived"]
    entry = LedgerEntry.objects.get(subject_id=first.id, action="definition.archived")
    assert entry.payload["replaced_by"] == str(found.definition.id)


def test_another_organizations_active_definition_stays(cast: Cast) -> None:
    session = cast.session(cast.other_operator)
    theirs = session.post(URL, {"slug": "triage", "definition": document()}).json()
    session.post(f"{URL}/{theirs['id']}/publish")
    published(cast)
    with every_tenant():
        assert WorkflowDefinition.objects.get(id=theirs["id"]).state == "active"


def test_the_database_allows_one_active_definition_per_organization_and_product(cast: Cast) -> None:
    for of in (None, product(cast)):
        published(cast, slug=f"first-{of}"[:12].lower(), of=of)
        second = draft(cast, slug=f"second-{of}"[:12].lower(), of=of)
        with pytest.raises(IntegrityError, match="definition_one_active"), transaction.atomic():
            WorkflowDefinition.objects.filter(id=second.id).update(state="active", snapshot_sha256="0" * 64)


@pytest.mark.parametrize("change", [{"definition": {}}, {"slug": "other"}, {"version": 9}, {"snapshot_sha256": "0"}])
def test_the_database_keeps_a_published_definition_as_it_is(cast: Cast, change: Any) -> None:
    definition = published(cast)
    with pytest.raises(DatabaseError, match="immutable"), transaction.atomic():
        WorkflowDefinition.objects.filter(id=definition.id).update(**change)
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("DELETE FROM workflows_workflowdefinition WHERE id = %s", [definition.id])


def test_faults_are_refused_all_at_once_and_nothing_has_happened(cast: Cast) -> None:
    active = published(cast)
    faulty = document(start_step="consent_gat", workflow_timeout_seconds=60)
    faulty["steps"]["emit_done"]["kind"] = "emit_finl"
    definition = draft(cast, document=faulty)
    before = row_counts()
    with pytest.raises(DefinitionInvalid) as refusal:
        publish(cast, definition)
    places = {error.pointer for error in refusal.value.errors}
    assert {"/start_step", "/steps/emit_done/kind", "/steps/ai_review/timeout_seconds"} <= places
    assert row_counts() == before
    assert (stored(active).state, stored(definition).state) == ("active", "draft")


def test_over_http_the_findings_are_422_each_with_rule_pointer_message_and_suggestion(cast: Cast) -> None:
    definition = draft(cast, start_step="consent_gat")
    answer = cast.session(cast.operator).post(f"{URL}/{definition.id}/publish")
    assert problem(answer) == (422, "definition-invalid")
    first = next(error for error in answer.json()["errors"] if error["pointer"] == "/start_step")
    assert (first["rule"], first["suggestion"]) == ("start_step_exists", "consent_gate")
    assert first["message"]


def test_it_is_frozen_under_its_hash_and_the_same_content_has_the_same_address(cast: Cast) -> None:
    definition = stored(published(cast))
    assert snapshot_load(definition.snapshot_sha256) == snapshot_document(document())
    assert Snapshot.objects.get(sha256=definition.snapshot_sha256).kind == "definition"
    again = stored(publish(cast, draft(cast)).definition)
    assert again.snapshot_sha256 == definition.snapshot_sha256
    assert again.published_at == AT


# -- its contract -----------------------------------------------------------------------------------------------------
def test_the_first_contract_is_a_draft_with_terms_that_suit_a_workflow(cast: Cast) -> None:
    found = publish(cast, draft(cast))
    contract = found.contract
    assert (contract.slug, contract.version, contract.state, contract.title) == ("triage", 1, "draft", "AI only")
    assert (contract.adapter, contract.effect, contract.risk_tier) == ("event", "idempotent", "medium")
    assert (contract.review_owner, contract.policy_slug) == ("approvers", "workflows")
    assert [row.area for row in found.missing] == TEN
    terms = documents(contract)
    assert terms["retry_and_replay"]["automatic_retries"] == "when_safe"
    assert terms["concurrency_and_locks"]["limits"]["per_context"] is None
    assert terms["attempt_identity_envelope"]["runtime_modes"] == ["active"]


def test_a_workflow_without_retries_gets_a_contract_without_them(cast: Cast) -> None:
    terms = documents(publish(cast, draft(cast, name="clinician_only")).contract)
    assert (terms["retry_and_replay"]["automatic_retries"], terms["retry_and_replay"]["max_attempts"]) == ("never", 1)


def test_what_the_engine_says_about_a_step_passes_the_contracts_boundary(cast: Cast) -> None:
    policy = BoundaryPolicy.from_document(documents(publish(cast, draft(cast)).contract)["metadata_boundary"])
    random = Random(7)
    for _ in range(500):
        said = {
            "definition": {"slug": "ai-with-confidence-escalation", "version": random.randrange(1, 10**6)},
            "step_id": "customer_review_2",
            "step_kind": "request_human_review",
            "instance_id": str(UUID(int=random.getrandbits(128))),
            "case_id": str(UUID(int=random.getrandbits(128))),
        }
        assert inspect_metadata(said, policy=policy) == ()
    assert inspect_metadata({"colour": "red"}, policy=policy) != ()


def test_the_answer_says_what_the_contract_waits_for(cast: Cast) -> None:
    session, definition = cast.session(cast.operator), draft(cast)
    answer = session.post(f"{URL}/{definition.id}/publish").json()
    contract = answer["contract"]
    assert (contract["slug"], contract["version"], contract["state"]) == ("triage", 1, "draft")
    assert contract["missing_areas"] == TEN
    with every_tenant():
        row = Contract.objects.get(id=contract["id"])
    approve(cast, row, *TEN[:9])
    assert session.get(f"{URL}/{definition.id}").json()["contract"]["missing_areas"] == TEN[9:]
    approve(cast, row, TEN[9])
    assert session.post(f"/api/v1/contracts/{row.id}/open").status_code == 200
    contract = session.get(f"{URL}/{definition.id}").json()["contract"]
    assert (contract["state"], contract["missing_areas"]) == ("open", [])


def test_the_publisher_may_choose_policy_risk_and_review_owner(cast: Cast) -> None:
    make_policy(cast, slug="strict")
    asked = {"policy_slug": "strict", "risk_tier": "high", "review_owner": "sa_qa"}
    definition = draft(cast)
    assert cast.session(cast.operator).post(f"{URL}/{definition.id}/publish", asked).status_code == 200
    contract = stored(definition).contract
    assert contract is not None
    assert {name: getattr(contract, name) for name in asked} == asked
    with every_tenant():
        assert not Policy.objects.filter(slug="workflows").exists()


@pytest.mark.parametrize("terms", [{"policy_slug": "nowhere"}, {"risk_tier": "huge"}, {"colour": "red"}])
def test_terms_that_do_not_exist_are_400(cast: Cast, terms: Any) -> None:
    definition, session = draft(cast), cast.session(cast.operator)
    before = row_counts()
    assert problem(session.post(f"{URL}/{definition.id}/publish", terms))[0] == 400
    assert row_counts() == before


def test_the_default_policy_is_made_once_and_stays_archived_when_somebody_archived_it(cast: Cast) -> None:
    published(cast)
    policy = Policy.objects.get(slug="workflows")
    assert (policy.state, [rule["verdict"] for rule in policy.rules]) == ("active", ["allow"])
    policy_archive(actor=cast.actor(cast.operator, [cast.organization]), at=AT, policy_id=policy.id)
    again = publish(cast, draft(cast, slug="other", of=product(cast)))
    assert again.contract.policy_slug == "workflows"
    assert [row.state for row in Policy.objects.filter(slug="workflows")] == ["archived"]


def test_the_next_version_carries_the_approvals_over_and_is_open_at_once(cast: Cast) -> None:
    first = opened(cast)
    slower = document()
    slower["steps"]["ai_review"]["timeout_seconds"] = 600
    found = publish(cast, draft(cast, document=slower))
    assert (found.contract.version, found.contract.state, found.missing) == (2, "open", ())
    assert len(found.contract.snapshot_sha256) == 64
    assert first.contract is not None
    assert Contract.objects.get(id=first.contract.id).state == "open", "its instances are still running"
    assert actions(found.contract.id)[-1] == "contract.opened"
    assert LedgerEntry.objects.get(subject_id=found.definition.id, action="definition.published").payload[
        "contract_state"
    ] == ("open")


def test_a_revoked_approval_is_not_carried_over(cast: Cast) -> None:
    first = opened(cast)
    assert first.contract is not None
    approve(cast, first.contract, "metadata_boundary", verdict=ReadinessVerdict.REVOKE)
    found = publish(cast, draft(cast))
    assert (found.contract.state, [row.area for row in found.missing]) == ("draft", ["metadata_boundary"])


def test_other_terms_than_before_need_the_owners_again(cast: Cast) -> None:
    opened(cast)
    found = publish(cast, draft(cast), terms=PublishTerms(risk_tier="high"))
    assert (found.contract.risk_tier, found.contract.state) == ("high", "draft")
    assert [row.area for row in found.missing] == TEN


def test_a_contract_that_was_never_opened_is_retired_and_what_was_approved_counts_on(cast: Cast) -> None:
    first = publish(cast, draft(cast)).contract
    approve(cast, first, *TEN[:4])
    found = publish(cast, draft(cast))
    old = Contract.objects.get(id=first.id)
    assert (old.state, old.closed_reason_code) == ("retired", "superseded")
    assert (found.contract.version, found.contract.state) == (2, "draft")
    assert [row.area for row in found.missing] == TEN[4:]


def test_a_draft_that_was_prepared_for_it_is_taken_as_it_is(cast: Cast) -> None:
    actor = cast.actor(cast.operator, [cast.organization])
    first = opened(cast)
    assert first.contract is not None
    prepared = contract_new_version(actor=actor, at=AT, contract_id=first.contract.id)
    limits = documents(prepared)["concurrency_and_locks"] | {"retry_after_seconds": 77}
    contract_change(actor=actor, at=AT, contract_id=prepared.id, documents={"concurrency_and_locks": limits})
    found = publish(cast, draft(cast))
    assert found.contract.id == prepared.id
    assert [row.area for row in found.missing] == ["concurrency_and_locks"]
    assert documents(found.contract)["concurrency_and_locks"]["retry_after_seconds"] == 77


def test_a_slug_that_names_somebody_elses_contract_is_refused(cast: Cast) -> None:
    make_contract(cast, slug="external")
    actor = cast.actor(cast.operator, [cast.organization])
    event = contract_create(
        actor=actor,
        at=AT,
        organization=cast.organization,
        slug="event",
        title="An event",
        review_owner="customer_clinician",
        policy_slug="standard",
        adapter="event",
        effect="idempotent",
    )
    approve(cast, event)
    contract_open(actor=actor, at=AT, contract_id=event.id)
    for slug in ("external", "event"):
        definition = draft(cast, slug=slug)
        before = row_counts()
        with pytest.raises(AlreadyExists):
            publish(cast, definition)
        assert row_counts() == before


def test_retries_that_are_new_need_their_owner_and_an_operators_never_stays(cast: Cast) -> None:
    opened(cast, name="clinician_only")
    found = publish(cast, draft(cast))
    assert documents(found.contract)["retry_and_replay"]["automatic_retries"] == "when_safe"
    assert [row.area for row in found.missing] == ["retry_and_replay"]
    never = documents(found.contract)["retry_and_replay"] | {"automatic_retries": "never", "max_attempts": 1}
    actor = cast.actor(cast.operator, [cast.organization])
    contract_change(actor=actor, at=AT, contract_id=found.contract.id, documents={"retry_and_replay": never})
    again = publish(cast, draft(cast))
    assert documents(again.contract)["retry_and_replay"]["automatic_retries"] == "never"


def test_a_step_of_effect_once_makes_a_contract_that_retries_nothing(cast: Cast) -> None:
    known = registry.kind("set_case_status")
    assert known is not None
    registry.register(replace(known, name="pay_out", effect="once"))
    try:
        steps = document()["steps"] | {
            "pay": {"kind": "pay_out", "params": {"status": "paid"}, "transitions": {"on_complete": "emit_done"}}
        }
        steps["ai_review"]["transitions"]["on_complete"] = "pay"
        retrying = draft(cast, steps=steps)
        with pytest.raises(DefinitionInvalid) as refusal:
            publish(cast, retrying)
        assert [(e.rule, e.pointer) for e in refusal.value.errors] == [
            ("contract_forbids_retries", "/steps/ai_review/max_retries")
        ]
        steps["ai_review"]["max_retries"] = 0
        contract = publish(cast, draft(cast, steps=steps)).contract
    finally:
        registry.unregister("pay_out")
    assert contract.effect == "once"
    assert documents(contract)["retry_and_replay"]["automatic_retries"] == "never"


def test_an_unknown_policy_is_named_by_its_place(cast: Cast) -> None:
    with pytest.raises(InvalidInput) as refusal:
        publish(cast, draft(cast), terms=PublishTerms(policy_slug="nowhere"))
    assert refusal.value.errors[0].pointer == "/policy_slug"
