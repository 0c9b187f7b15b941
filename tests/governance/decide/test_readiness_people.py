"""Ten areas need at least two different people: one owner of everything is not enough."""

from typing import Any

import pytest

from governance.contracts.models import Contract
from governance.contracts.rules.documents import AREAS
from governance.contracts.services.contracts import contract_new_version, contract_open
from governance.ledger.models import LedgerEntry
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.governance.decide.support import RATIONALE, problem
from tests.governed import AT, approve, make_contract, make_policy, open_contract

NAMES = [area.name for area in AREAS]
LAST = AREAS[-1].name


@pytest.fixture
def founded(cast: Cast) -> Cast:
    """Two operators: the founding has ended."""
    assert cast.operator
    assert cast.second_operator
    return cast


def by_olga(cast: Cast) -> Contract:
    make_policy(cast)
    contract = make_contract(cast)
    olga = cast.session(cast.owner)
    for name in NAMES:
        address = f"/api/v1/contracts/{contract.id}/readiness/{name}/approve"
        assert olga.post(address, RATIONALE).status_code == 200
    return contract


def board(cast: Cast, contract: Contract) -> dict[str, Any]:
    found: dict[str, Any] = cast.session(cast.operator).get(f"/api/v1/contracts/{contract.id}/readiness").json()
    return found["approvers"]


def press_open(cast: Cast, contract: Contract) -> Any:
    return cast.session(cast.operator).post(f"/api/v1/contracts/{contract.id}/open", {}, format="json")


def decide(cast: Cast, user: Any, contract: Contract, verdict: str) -> None:
    address = f"/api/v1/contracts/{contract.id}/readiness/{LAST}/{verdict}"
    assert cast.session(user).post(address, RATIONALE).status_code == 200


def opened(contract: Contract) -> LedgerEntry:
    with every_tenant():
        return LedgerEntry.objects.get(action="contract.opened", subject_id=contract.id)


def test_one_person_is_not_enough_and_the_answer_says_who_is_missing(founded: Cast) -> None:
    contract = by_olga(founded)
    assert founded.second_owner
    assert board(founded, contract) == {"count": 1, "needed": 2, "enough": False, "founding": False}
    refused = press_open(founded, contract)
    assert problem(refused) == (409, "readiness-too-few-people")
    assert refused.json()["detail"] == "The ten areas are approved by 1 person; 2 different people are needed."
    told = {row["pointer"]: row["message"] for row in refused.json()["errors"]}
    assert set(told) == {f"/{name}" for name in NAMES}
    assert told[f"/{LAST}"] == "approved by olga; owen could approve it instead"
    assert "approved by olga; nobody else of its group could" in told.values()


def test_a_second_person_makes_it_two(founded: Cast) -> None:
    contract = by_olga(founded)
    decide(founded, founded.owner, contract, "revoke")
    decide(founded, founded.second_owner, contract, "approve")
    assert board(founded, contract) == {"count": 2, "needed": 2, "enough": True, "founding": False}
    assert press_open(founded, contract).status_code == 200
    assert "founding" not in opened(contract).payload


def test_an_approval_that_was_carried_over_counts_for_its_person(founded: Cast) -> None:
    first = open_contract(founded)
    actor = founded.actor(founded.operator, [founded.organization])
    with every_tenant():
        second = contract_new_version(actor=actor, at=AT, contract_id=first.id)
    assert board(founded, second)["count"] == 2
    with every_tenant():
        assert contract_open(actor=actor, at=AT, contract_id=second.id).state == "open"


def test_the_installation_may_ask_for_more(founded: Cast, settings: Any) -> None:
    settings.READINESS_PEOPLE = 3
    make_policy(founded)
    contract = make_contract(founded)
    approve(founded, contract)
    assert problem(press_open(founded, contract)) == (409, "readiness-too-few-people")
    settings.READINESS_PEOPLE = 2
    assert press_open(founded, contract).status_code == 200


def test_while_an_organization_is_founded_one_is_enough_and_it_is_marked(cast: Cast) -> None:
    contract = by_olga(cast)
    assert board(cast, contract) == {"count": 1, "needed": 1, "enough": True, "founding": True}
    assert press_open(cast, contract).status_code == 200
    assert opened(contract).payload["founding"] is True


def test_the_readiness_board_counts_people(founded: Cast) -> None:
    contract = by_olga(founded)
    address = f"/admin/governance/contract/{contract.id}/readiness/"
    founded.operator.is_staff = True
    founded.operator.save(update_fields=["is_staff"])
    html = founded.console(founded.operator).get(address, follow=True).content.decode()
    assert "approved by 1 person, 2 needed" in html
    assert "The contract cannot be opened yet" in html
