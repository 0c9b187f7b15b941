"""`/contracts/{id}/readiness` over HTTP: the board's exact shape, and that only the owners of an area decide on it."""

from typing import Any

import pytest
from rest_framework.test import APIClient

from governance.contracts.models import Contract, ReadinessDecision
from governance.contracts.rules.documents import AREAS, default_documents
from governance.contracts.services.contracts import contract_change
from governance.ledger.models import LedgerEntry
from governance.people.services.people import person_role_take
from reasoncodes.base.actors import SYSTEM
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.governance.decide.support import RATIONALE, actions, intake, problem, violations
from tests.governance.support import everything_stored
from tests.governed import AT, approve, make_contract, open_contract

AREA = "metadata_boundary"


def board_url(contract: Contract) -> str:
    return f"/api/v1/contracts/{contract.id}/readiness"


def decide(client: Any, contract: Contract, verdict: str, area: str = AREA, **changes: Any) -> Any:
    return client.post(f"{board_url(contract)}/{area}/{verdict}", RATIONALE | changes)


def row_of(answer: Any, area: str = AREA) -> dict[str, Any]:
    return next(row for row in answer.json()["areas"] if row["area"] == area)


def decisions() -> list[str]:
    with every_tenant():
        return list(ReadinessDecision.objects.order_by("id").values_list("verdict", flat=True))


@pytest.fixture
def owner(cast: Cast) -> Any:
    """Priya, of the privacy group, signed in."""
    return cast.session(cast.person("priya", "owner:privacy"))


def test_the_board_has_ten_areas_in_order_and_the_designed_fields(cast: Cast, owner: Any) -> None:
    contract = make_contract(cast)
    answer = owner.get(board_url(contract))
    assert set(answer.json()) == {"areas", "approvers"}
    areas = answer.json()["areas"]
    assert [(row["area"], row["owner_group"]) for row in areas] == [(area.name, area.owner_group) for area in AREAS]
    designed = {"area", "owner_group", "status", "document", "document_sha256", "decided_by", "decided_at", "rationale"}
    assert all(designed <= set(row) for row in areas)
    row = row_of(answer)
    assert (row["status"], row["decided_by"], row["decided_at"], row["rationale"]) == ("pending", None, None, None)
    assert row["document"] == default_documents()[AREA]
    assert len(row["document_sha256"]) == 64


def test_an_owner_approves_revokes_and_rejects(cast: Cast, owner: Any) -> None:
    contract = make_contract(cast)
    for verdict, status in (("approve", "approved"), ("revoke", "revoked"), ("reject", "rejected")):
        answer = decide(owner, contract, verdict)
        assert answer.status_code == 200, answer.content
        row = row_of(answer)
        assert (row["status"], row["decided_by"]) == (status, "priya")
        assert (row["rationale"], row["evidence_ref"]) == ("Looked at it", "doc-4711")
        assert row["decided_at"].endswith("Z")
    assert actions(contract.id)[1:] == ["readiness.approved", "readiness.revoked", "readiness.rejected"]
    with every_tenant():
        entry = LedgerEntry.objects.get(action="readiness.approved")
    assert entry.payload["document"] == row_of(owner.get(board_url(contract)))["document_sha256"]
    assert "Looked at it" not in str(entry.payload)


@pytest.mark.parametrize(
    ("before", "verdict"), [(["approve"], "approve"), (["approve"], "reject"), ([], "revoke"), (["reject"], "revoke")]
)
def test_a_verdict_that_changes_nothing_is_409(cast: Cast, owner: Any, before: list[str], verdict: str) -> None:
    contract = make_contract(cast)
    for earlier in before:
        decide(owner, contract, earlier)
    assert problem(decide(owner, contract, verdict)) == (409, "wrong-state")
    assert decisions() == before


def test_a_key_decides_nothing_whatever_its_scopes(cast: Cast) -> None:
    contract = make_contract(cast)
    assert problem(decide(cast.api(), contract, "approve")) == (403, "scope-missing")
    assert decisions() == []


@pytest.mark.parametrize("role", ["operator", "auditor", "reviewer:customer_clinician", "owner:trust-operations"])
def test_whoever_is_not_in_the_owning_group_is_refused_and_on_record(cast: Cast, role: str) -> None:
    contract = make_contract(cast)
    for verdict in ("approve", "reject", "revoke"):
        assert problem(decide(cast.session(cast.person("walter", role)), contract, verdict)) == (403, "not-an-owner")
    assert violations(cast.organization) == ["unauthorized_decision"] * 3
    assert decisions() == []


def test_a_stranger_even_with_the_same_role_elsewhere_finds_no_contract(cast: Cast) -> None:
    contract = make_contract(cast)
    otto = cast.person("otto", "owner:privacy", organization=cast.other)
    assert problem(decide(cast.session(otto), contract, "approve")) == (404, "not-found")
    assert problem(cast.session(otto).get(board_url(contract))) == (404, "not-found")
    assert violations(cast.other) == ["cross_tenant"] * 2
    assert violations(cast.organization) == []


def test_without_a_credential_or_a_role_nothing_is_shown(cast: Cast) -> None:
    contract = make_contract(cast)
    assert problem(APIClient().get(board_url(contract))) == (401, "credential-missing")
    assert problem(decide(APIClient(), contract, "approve")) == (401, "credential-missing")
    assert problem(cast.session(cast.nobody).get(board_url(contract))) == (403, "scope-missing")
    assert cast.session(cast.auditor).get(board_url(contract)).status_code == 200
    assert cast.api("governance:read").get(board_url(contract)).status_code == 200


def test_an_owner_who_left_the_group_is_refused(cast: Cast, owner: Any) -> None:
    contract = make_contract(cast)
    with every_tenant():
        person_role_take(
            actor=SYSTEM, at=AT, user=cast.person("priya"), organization=cast.organization, role="owner:privacy"
        )
    cast.person("priya", "auditor")
    assert problem(decide(owner, contract, "approve")) == (403, "not-an-owner")


def test_nobody_approves_their_own_work_but_may_reject_it(cast: Cast, owner: Any) -> None:
    contract = make_contract(cast)
    priya = cast.person("priya")
    with every_tenant():
        contract_change(
            actor=cast.actor(priya, [cast.organization]),
            at=AT,
            contract_id=contract.id,
            documents={AREA: default_documents()[AREA] | {"max_bytes": 1024}},
        )
    assert problem(decide(owner, contract, "approve")) == (403, "own-work")
    assert violations(cast.organization) == ["own_work_approved"]
    assert decide(owner, contract, "reject").status_code == 200
    colleague = cast.session(cast.person("paul", "owner:privacy"))
    assert row_of(decide(colleague, contract, "approve"))["status"] == "approved"


@pytest.mark.parametrize("field", ["rationale", "evidence_ref"])
@pytest.mark.parametrize("text", ["john.doe-q7x@example.com", "Mr. John Quimbly-q7x", "123-45-6789 q7x"])
def test_text_that_must_not_enter_the_record_is_422_and_not_repeated(
    cast: Cast, owner: Any, field: str, text: str
) -> None:
    contract = make_contract(cast)
    answer = decide(owner, contract, "approve", **{field: text})
    assert problem(answer) == (422, "metadata-boundary")
    assert {error["pointer"] for error in answer.json()["errors"]} == {f"/{field}"}
    assert "q7x" not in answer.content.decode()
    assert "q7x" not in everything_stored()


@pytest.mark.parametrize(
    "change", [{"rationale": ""}, {"rationale": "x" * 281}, {"rationale": None}, {"colour": "red"}]
)
def test_a_body_of_the_wrong_shape_is_400(cast: Cast, owner: Any, change: Any) -> None:
    contract = make_contract(cast)
    assert problem(decide(owner, contract, "approve", **change)) == (400, "invalid-input")
    assert decisions() == []


@pytest.mark.parametrize(("area", "verdict"), [("colours", "approve"), (AREA, "applaud"), ("x" * 500, "approve")])
def test_an_unknown_area_or_verdict_is_404(cast: Cast, owner: Any, area: str, verdict: str) -> None:
    assert problem(decide(owner, make_contract(cast), verdict, area)) == (404, "not-found")


def test_a_retired_contract_takes_no_decisions(cast: Cast, owner: Any, operator: Any) -> None:
    contract = make_contract(cast)
    operator.post(f"/api/v1/contracts/{contract.id}/retire", {"reason_code": "planned_maintenance"})
    assert problem(decide(owner, contract, "approve")) == (409, "wrong-state")


@pytest.mark.parametrize("area", AREAS, ids=lambda area: area.name)
def test_revoking_any_area_closes_intake_for_the_next_request(cast: Cast, caller: Any, area: Any) -> None:
    contract = open_contract(cast)
    assert intake(caller).status_code == 201
    owner = cast.session(cast.person("owen", f"owner:{area.owner_group}"))
    assert decide(owner, contract, "revoke", area.name).status_code == 200
    assert problem(intake(caller, key="key-00000002")) == (403, "attempt-creation-disabled")
    assert actions(contract.id)[-2:] == ["readiness.revoked", "contract.suspended"]


def test_a_carried_approval_says_so_and_is_stale_once_the_document_changes(cast: Cast, operator: Any) -> None:
    contract = open_contract(cast)
    new = operator.post(f"/api/v1/contracts/{contract.id}/new-version").json()["id"]
    url = f"/api/v1/contracts/{new}"
    row = row_of(operator.get(f"{url}/readiness"))
    assert (row["status"], row["carried_over"], row["decided_by"]) == ("approved", True, "olga")
    document = default_documents()[AREA] | {"max_bytes": 512}
    operator.patch(url, {"documents": {AREA: document}})
    assert row_of(operator.get(f"{url}/readiness"))["status"] == "stale"
    assert problem(operator.post(f"{url}/open")) == (409, "readiness-incomplete")
    with every_tenant():
        approve(cast, Contract.objects.get(id=new), AREA)
    assert operator.post(f"{url}/open").status_code == 200
