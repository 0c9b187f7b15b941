"""Two people at once, on real connections. Each of these was seen to fail with its lock taken out."""

from collections.abc import Callable
from typing import Any

import pytest

from governance.contracts.models import Contract, ReadinessDecision
from governance.contracts.selectors import readiness_board
from governance.ledger.models import LedgerEntry
from governance.policies.models import Policy
from governance.policies.services import policy_publish
from governance.shutdown.models import Shutdown
from reasoncodes.base.errors import WrongState
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.governance.decide.support import RATIONALE
from tests.governance.support import in_parallel
from tests.governed import AT, DENY, HOLD, approve, make_contract, make_policy, open_contract

pytestmark = pytest.mark.django_db(transaction=True)
ROUNDS = 4
CONTRACTS = "/api/v1/contracts"


def answers(*posts: tuple[Any, str, Any]) -> list[int]:
    """The statuses of these posts, sent at the same time."""

    def work(client: Any, url: str, body: Any) -> Callable[[], int]:
        return lambda: int(client.post(url, body).status_code)

    return in_parallel(*[work(*post) for post in posts])


def publishing(cast: Cast, policy: Policy) -> Callable[[], int]:
    """The service that a confirmed proposal calls; its locks are what is tried here."""
    actor = cast.actor(cast.operator, [cast.organization])

    def work() -> int:
        try:
            with every_tenant():
                policy_publish(actor=actor, at=AT, policy_id=policy.id)
        except WrongState as refusal:
            return refusal.status
        return 200

    return work


def owners(cast: Cast, count: int) -> list[Any]:
    return [cast.session(cast.person(f"priya-{number}", "owner:privacy")) for number in range(count)]


def test_an_area_is_approved_once_by_whoever_was_first(transactional_db: None, cast: Cast) -> None:
    people = owners(cast, 4)
    for number in range(ROUNDS):
        contract = make_contract(cast, slug=f"contract-{number}")
        url = f"{CONTRACTS}/{contract.id}/readiness/metadata_boundary/approve"
        assert sorted(answers(*[(person, url, RATIONALE) for person in people])) == [200, 409, 409, 409]
        with every_tenant():
            assert ReadinessDecision.objects.filter(contract=contract).count() == 1
            assert LedgerEntry.objects.filter(subject_id=contract.id, action="readiness.approved").count() == 1


def test_a_contract_is_never_open_while_an_area_is_revoked(transactional_db: None, cast: Cast) -> None:
    make_policy(cast)
    operator, (owner,) = cast.session(cast.operator), owners(cast, 1)
    for number in range(ROUNDS):
        contract = make_contract(cast, slug=f"contract-{number}")
        approve(cast, contract)
        url = f"{CONTRACTS}/{contract.id}"
        opened, revoked = answers(
            (operator, f"{url}/open", None), (owner, f"{url}/readiness/metadata_boundary/revoke", RATIONALE)
        )
        assert revoked == 200
        assert opened in {200, 409}
        with every_tenant():
            stored = Contract.objects.get(id=contract.id)
            assert stored.state == ("suspended" if opened == 200 else "draft")
            assert "revoked" in {row.status for row in readiness_board(contract=stored)}


def test_of_several_drafts_published_at_once_one_is_active_in_the_end(transactional_db: None, cast: Cast) -> None:
    for number in range(ROUNDS):
        slug = f"policy-{number}"
        if number % 2:
            make_policy(cast, slug=slug)
        drafts = [make_policy(cast, slug=slug, rules=rules, publish=False) for rules in (HOLD, DENY, HOLD)]
        assert in_parallel(*[publishing(cast, draft) for draft in drafts]) == [200, 200, 200]
        with every_tenant():
            states = list(Policy.objects.filter(slug=slug).values_list("state", flat=True))
        assert sorted(states) == ["active"] + ["archived"] * (len(states) - 1)


def test_one_draft_is_published_once(transactional_db: None, cast: Cast) -> None:
    draft = make_policy(cast, publish=False)
    assert sorted(in_parallel(*[publishing(cast, draft)] * 3)) == [200, 409, 409]
    with every_tenant():
        assert LedgerEntry.objects.filter(subject_id=draft.id, action="policy.published").count() == 1


def test_of_proposals_confirmed_at_once_one_comes_into_force(transactional_db: None, cast: Cast) -> None:
    """Each says which version it replaces, so the others are outdated."""
    proposer, *others = [cast.session(cast.person(f"alice-{number}", "operator")) for number in range(4)]
    drafts = [make_policy(cast, rules=rules, publish=False) for rules in (HOLD, DENY, HOLD)]
    proposed = [proposer.post(f"/api/v1/policies/{draft.id}/publish").json()["authority_change"] for draft in drafts]
    posts = [
        (cast.fresh(person), f"/api/v1/authority-changes/{change['id']}/confirm", {})
        for person, change in zip(others, proposed, strict=True)
    ]
    assert sorted(answers(*posts)) == [200, 409, 409]
    with every_tenant():
        assert Policy.objects.filter(state="active").count() == 1


def test_a_shutdown_is_released_once(transactional_db: None, cast: Cast) -> None:
    open_contract(cast)
    operator = cast.session(cast.operator)
    people = [cast.session(cast.person(f"bob-{number}", "operator")) for number in range(3)]
    body = {"scope": "contract", "target": "close-case", "reason_code": "operator_shutdown", "note": "Incident 17"}
    for _ in range(ROUNDS):
        shutdown = operator.post("/api/v1/shutdowns", body).json()
        url = f"/api/v1/shutdowns/{shutdown['id']}/release"
        assert sorted(answers(*[(person, url, {}) for person in people])) == [200, 409, 409]
        with every_tenant():
            assert Shutdown.objects.get(id=shutdown["id"]).state == "released"
            assert LedgerEntry.objects.filter(subject_id=shutdown["id"], action="shutdown.released").count() == 1


def test_new_versions_of_two_old_versions_at_once_give_one_draft(transactional_db: None, cast: Cast) -> None:
    first = open_contract(cast)
    operator = cast.session(cast.operator)
    second = operator.post(f"{CONTRACTS}/{first.id}/new-version").json()
    for _ in range(ROUNDS):
        operator.post(f"{CONTRACTS}/{second['id']}/open")
        posts = [(operator, f"{CONTRACTS}/{id_}/new-version", None) for id_ in (first.id, second["id"])]
        assert sorted(answers(*posts)) == [201, 409]
        with every_tenant():
            second = {"id": str(Contract.objects.get(state="draft").id)}
