"""The readiness board: owners decide on what they did not write, operators edit drafts, everybody sees why."""

import json
from typing import Any

import pytest

from governance.contracts.models import Contract, ContractDocument, ReadinessDecision
from governance.contracts.rules.documents import AREAS, area
from governance.contracts.selectors import readiness_board
from governance.contracts.services.contracts import contract_change, contract_new_version
from governance.ledger.models import LedgerEntry
from governance.violations.models import GovernanceViolation
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.governance.admin.support import browser, page
from tests.governed import AT, approve, make_contract, open_contract

AREA = "metadata_boundary"
SAID = {"verdict": "approve", "rationale": "Looked at it with care", "evidence_ref": "doc-7"}


@pytest.fixture
def contract(cast: Cast) -> Contract:
    return make_contract(cast)


def board(contract: Contract, name: str = "") -> str:
    return page("contract", contract.id, "readiness", *([name] if name else []))


def status(contract: Contract, name: str = AREA) -> str:
    with every_tenant():
        return next(row.status for row in readiness_board(contract=contract) if row.area == name)


def test_the_board_shows_ten_areas_with_status_and_owner(cast: Cast, contract: Contract) -> None:
    approve(cast, contract, "retry_and_replay")
    html = cast.console(cast.auditor).get(board(contract)).content.decode()
    for entry in AREAS:
        assert entry.title in html
        assert entry.owner_group in html
    assert "1 of 10 areas approved" in html
    assert "olga" in html


def test_an_owner_lands_on_the_area_that_waits_for_them(cast: Cast, contract: Contract) -> None:
    answer = browser(cast, "owner").get(board(contract))
    assert answer.context["chosen"].area == AREA


def test_an_owner_approves_and_the_decision_names_the_document(cast: Cast, contract: Contract) -> None:
    answer = browser(cast, "owner").post(board(contract, AREA), SAID, follow=True)
    assert answer.status_code == 200
    assert status(contract) == "approved"
    with every_tenant():
        decision = ReadinessDecision.objects.get()
        assert LedgerEntry.objects.filter(action="readiness.approved").count() == 1
    html = answer.content.decode()
    assert "Looked at it with care" in html
    assert "doc-7" in html
    assert decision.document_sha256 in html
    assert "Revoke the approval" in html


def test_rejecting_and_revoking_go_through_the_same_door(cast: Cast, contract: Contract) -> None:
    owner = browser(cast, "owner")
    owner.post(board(contract, AREA), SAID | {"verdict": "reject"})
    assert status(contract) == "rejected"
    owner.post(board(contract, AREA), SAID)
    owner.post(board(contract, AREA), SAID | {"verdict": "revoke"})
    assert status(contract) == "revoked"
    html = owner.get(board(contract, AREA)).content.decode()
    assert html.count("Looked at it with care") == 4, "three in the history and the latest one above"


def test_revoking_closes_an_open_contract(cast: Cast) -> None:
    contract = open_contract(cast)
    browser(cast, "owner").post(board(contract, AREA), SAID | {"verdict": "revoke"})
    contract.refresh_from_db()
    assert (contract.state, contract.closed_reason_code) == ("suspended", "readiness_revoked")


@pytest.mark.parametrize("who", ["operator", "auditor", "reviewer", "administrator"])
def test_who_does_not_own_the_area_sees_why_not_and_is_refused_on_record(
    cast: Cast, contract: Contract, who: str
) -> None:
    client = browser(cast, who)
    html = client.get(board(contract, AREA)).content.decode()
    assert 'name="verdict"' not in html
    assert "Only members of <strong>privacy</strong> can decide here" in html
    answer = client.post(board(contract, AREA), SAID)
    assert answer.status_code == 403
    assert "This area is owned by privacy." in answer.content.decode()
    assert status(contract) == "pending"
    with every_tenant():
        violation = GovernanceViolation.objects.get()
    assert (violation.kind, violation.organization_id) == ("unauthorized_decision", cast.organization.id)


def test_an_owner_of_another_area_is_refused(cast: Cast, contract: Contract) -> None:
    answer = browser(cast, "owner").post(board(contract, "retry_and_replay"), SAID)
    assert answer.status_code == 403
    assert status(contract, "retry_and_replay") == "pending"


@pytest.mark.parametrize("who", ["stranger", "nobody", "anonymous"])
def test_outsiders_decide_nothing_and_learn_nothing(cast: Cast, contract: Contract, who: str) -> None:
    answer = browser(cast, who).post(board(contract, AREA), SAID)
    assert answer.status_code in {302, 403, 404}
    with every_tenant():
        assert not ReadinessDecision.objects.exists()


def test_an_owner_of_the_same_group_elsewhere_does_not_find_the_contract(cast: Cast, contract: Contract) -> None:
    elsewhere = cast.person("paula", "owner:privacy", organization=cast.other)
    assert cast.console(elsewhere).post(board(contract, AREA), SAID).status_code == 404


def test_nobody_approves_what_they_wrote_and_the_page_says_so(cast: Cast, contract: Contract) -> None:
    both = cast.person("paula", "owner:privacy", "operator", exception=True)
    with every_tenant():
        document = area(AREA).default | {"max_bytes": 1024}
        contract_change(
            actor=cast.actor(both, [cast.organization]), at=AT, contract_id=contract.id, documents={AREA: document}
        )
    client = cast.console(both)
    html = client.get(board(contract, AREA)).content.decode()
    assert "You wrote to this document since its last approval" in html
    assert 'value="approve"' not in html
    answer = client.post(board(contract, AREA), SAID)
    assert answer.status_code == 403
    assert "another member of the group" in answer.content.decode()


@pytest.mark.parametrize("rationale", ["mail john.smith@example.org about it", "x" * 281, ""])
def test_a_rationale_that_must_not_enter_the_record_is_refused_in_words(
    cast: Cast, contract: Contract, rationale: str
) -> None:
    answer = browser(cast, "owner").post(board(contract, AREA), SAID | {"rationale": rationale})
    assert answer.status_code in {200, 422}
    assert 'role="alert"' in answer.content.decode()
    assert status(contract) == "pending"


def test_what_differs_from_the_safe_default_is_marked(cast: Cast) -> None:
    contract = make_contract(cast, documents={AREA: area(AREA).default | {"max_bytes": 1024}})
    answer = cast.console(cast.operator).get(board(contract, AREA))
    assert [d.pointer for d in answer.context["differences"]] == ["/max_bytes"]
    assert [line.text.strip(" ,") for line in answer.context["lines"] if line.changed] == ['"max_bytes": 1024']
    assert not cast.console(cast.operator).get(board(contract, "retry_and_replay")).context["differences"]


def test_a_carried_over_approval_says_where_it_comes_from(cast: Cast) -> None:
    old = open_contract(cast)
    with every_tenant():
        new = contract_new_version(actor=cast.actor(cast.operator, [cast.organization]), at=AT, contract_id=old.id)
    html = cast.console(cast.operator).get(board(new, AREA)).content.decode()
    assert "carried over from version 1" in html


def test_opening_shows_what_is_missing_and_who_owns_it(cast: Cast, contract: Contract) -> None:
    approve(cast, contract, *[entry.name for entry in AREAS if entry.name != AREA])
    client = cast.console(cast.operator)
    address = page("contract", contract.id, "act", "open")
    html = client.get(address).content.decode()
    assert "1 of ten areas is not approved" in html
    assert "privacy" in html
    answer = client.post(address)
    assert answer.status_code == 409
    with every_tenant():
        contract.refresh_from_db()
    assert contract.state == "draft"


# -- the editor -------------------------------------------------------------------------------------------------------
def editor(contract: Contract) -> str:
    return page("contract", contract.id, "readiness", AREA, "edit")


def stored(contract: Contract) -> Any:
    with every_tenant():
        return ContractDocument.objects.get(contract=contract, area=AREA)


def test_an_operator_edits_a_draft_document_and_becomes_its_author(cast: Cast, contract: Contract) -> None:
    changed = area(AREA).default | {"max_bytes": 1024}
    answer = cast.console(cast.operator).post(editor(contract), {"document": json.dumps(changed)})
    assert answer.status_code == 302
    assert (stored(contract).document, stored(contract).written_by_id) == (changed, cast.operator.id)


def test_resetting_brings_the_safe_default_back(cast: Cast) -> None:
    contract = make_contract(cast, documents={AREA: area(AREA).default | {"max_bytes": 1024}})
    cast.console(cast.operator).post(editor(contract), {"document": "not even JSON", "reset": "1"})
    assert stored(contract).document == area(AREA).default


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "This is not JSON"),
        ('{"max_bytes": 1, "max_bytes": 2}', "the same name twice"),
        ("[" * 100_000, "nested too deep"),
        ("[]", "/metadata_boundary"),
    ],
)
def test_without_a_script_the_problems_come_on_submit(cast: Cast, contract: Contract, text: str, said: str) -> None:
    answer = cast.console(cast.operator).post(editor(contract), {"document": text})
    assert said in answer.content.decode()
    assert stored(contract).document == area(AREA).default


def test_an_open_contracts_document_is_not_edited(cast: Cast) -> None:
    contract = open_contract(cast)
    client = cast.console(cast.operator)
    assert client.get(editor(contract)).status_code == 403
    assert client.post(editor(contract), {"reset": "1"}).status_code == 409
    with every_tenant():
        assert GovernanceViolation.objects.get().kind == "record_mutation"


def test_live_validation_tells_every_place_and_saves_nothing(cast: Cast, contract: Contract) -> None:
    address = page("contract", contract.id, "readiness", AREA, "validate")
    client = cast.console(cast.operator)
    wrong = area(AREA).default | {"max_bytes": "many", "extra": 1}
    problems = client.post(address, {"document": json.dumps(wrong)}).json()["problems"]
    assert {problem["pointer"] for problem in problems} >= {f"/{AREA}/max_bytes", f"/{AREA}/extra"}
    assert client.post(address, {"document": json.dumps(area(AREA).default)}).json() == {"problems": []}
    assert client.post(address, {"document": "{"}).json()["problems"][0]["rule"] == "json"
    assert stored(contract).document == area(AREA).default
    assert client.get(address).status_code == 405
    for who in ("auditor", "owner", "reviewer"):
        assert browser(cast, who).post(address, {"document": "{}"}).status_code == 403
    assert browser(cast, "stranger").post(address, {"document": "{}"}).status_code == 404
