"""Policies are published, and caps raised, by two people; the proposal says what it would change."""

from typing import Any

import pytest

from governance.authority.models import AuthorityChange
from governance.ledger.models import LedgerEntry
from governance.policies.models import Policy
from governance.policies.services import policy_change, policy_publish
from governance.tenancy.models import Organization
from reasoncodes.base.actors import SYSTEM
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.governance.admin.support import make_decisions, page
from tests.governance.authority.support import CHANGES, change_of, confirm, key_of, violation_kinds
from tests.governed import ALLOW, AT, HOLD, make_policy, open_contract

URL = "/api/v1/policies"


@pytest.fixture
def two(cast: Cast) -> Cast:
    """A clinic whose founding has ended: Alice and Amir operate it."""
    _ = cast.operator, cast.second_operator
    return cast


def propose(cast: Cast, policy: Policy, *, client: Any = None) -> Any:
    return (client or cast.session(cast.operator)).post(f"{URL}/{policy.id}/publish")


def state(policy: Policy) -> str:
    with every_tenant():
        return str(Policy.objects.get(id=policy.id).state)


def caps(cast: Cast) -> tuple[int, int, str]:
    with every_tenant():
        found = Organization.objects.get(id=cast.organization.id)
    return found.max_concurrency, found.max_runs_per_min, found.status


# -- policies ---------------------------------------------------------------------------------------------------------
def test_a_founder_publishes_at_once_and_the_ledger_says_so(cast: Cast) -> None:
    policy = make_policy(cast, publish=False)
    answer = propose(cast, policy)
    assert (answer.status_code, answer.json()["state"]) == (200, "active")
    with every_tenant():
        change = AuthorityChange.objects.get(kind="policy.publish")
        actions = list(LedgerEntry.objects.filter(subject_id=change.id).values_list("action", flat=True))
    assert (change.founding, actions) == (True, ["authority.founding"])


def test_with_two_people_it_waits_until_the_second_confirms(two: Cast) -> None:
    policy = make_policy(two, publish=False)
    change = change_of(propose(two, policy))
    assert state(policy) == "draft"
    assert confirm(two, change.id, by=two.second_operator).status_code == 200
    assert state(policy) == "active"


def test_the_proposal_carries_both_rule_lists_and_what_they_would_have_decided(two: Cast) -> None:
    contract = open_contract(two, rules=HOLD)
    make_decisions(two, contract, count=3)
    policy = make_policy(two, rules=ALLOW, publish=False)
    change = change_of(propose(two, policy))
    assert (change.before["rules"], change.after["rules"]) == (HOLD, ALLOW)
    tally = change.after["simulation"]
    assert (tally["decided"], tally["changed"], tally["loosened"]) == (3, 3, 3)
    assert tally["by_move"] == {"needs_approval -> allow": 3}
    assert change.loosens
    assert list(change.after["loosening"]) == ["all"]


def test_a_stricter_policy_is_not_marked(two: Cast) -> None:
    make_policy(two, rules=ALLOW)
    change = change_of(propose(two, make_policy(two, rules=HOLD, publish=False)))
    assert (change.loosens, change.after["loosening"]) == (False, {})


def test_nobody_who_wrote_to_the_draft_can_confirm_it(two: Cast) -> None:
    policy = make_policy(two, publish=False)
    third = two.person("aziz", "operator")
    assert two.session(two.second_operator).patch(f"{URL}/{policy.id}", {"title": "Other"}).status_code == 200
    change = change_of(propose(two, policy))
    refused = confirm(two, change.id, by=two.second_operator)
    assert (refused.status_code, refused.json()["type"].split("/")[-1]) == (403, "second-person-needed")
    assert confirm(two, change.id, by=two.operator).status_code == 403
    assert violation_kinds() == ["second_person_missing"] * 2
    assert confirm(two, change.id, by=third).status_code == 200


def test_who_wrote_with_a_services_key_cannot_confirm_either(two: Cast) -> None:
    policy = make_policy(two, publish=False)
    theirs = key_of(two, two.second_operator)
    assert theirs.patch(f"{URL}/{policy.id}", {"title": "Other"}).status_code == 200
    change = change_of(propose(two, policy))
    assert confirm(two, change.id, by=two.second_operator).status_code == 403


def test_a_copy_of_rules_that_were_never_published_keeps_their_authors(two: Cast) -> None:
    first = make_policy(two, publish=False)
    mine = two.session(two.operator)
    assert mine.post(f"{URL}/{first.id}/archive").status_code == 200
    given = {"slug": first.slug, "title": "Again", "rules": first.rules}
    again = two.session(two.second_operator).post(URL, given)
    answer = two.session(two.second_operator).post(f"{URL}/{again.json()['id']}/publish")
    assert confirm(two, change_of(answer).id, by=two.operator).status_code == 403


def test_a_draft_that_changed_since_is_not_what_was_proposed(two: Cast) -> None:
    policy = make_policy(two, publish=False)
    change = change_of(propose(two, policy))
    with every_tenant():
        policy_change(actor=SYSTEM, at=AT, policy_id=policy.id, changes={"rules": HOLD})
    answer = confirm(two, change.id, by=two.second_operator)
    assert (answer.status_code, answer.json()["type"].split("/")[-1]) == (409, "proposal-outdated")
    assert state(policy) == "draft"


def test_another_version_that_was_published_since_makes_it_outdated(two: Cast) -> None:
    policy = make_policy(two, publish=False)
    change = change_of(propose(two, policy))
    with every_tenant():
        other = make_policy(two, rules=HOLD, publish=False)
        policy_publish(actor=SYSTEM, at=AT, policy_id=other.id)
    assert confirm(two, change.id, by=two.second_operator).status_code == 409
    assert (state(policy), state(other)) == ("draft", "active")


@pytest.mark.parametrize("who", ["auditor", "reviewer", "owner", "nobody"])
def test_other_roles_cannot_propose_to_publish(two: Cast, who: str) -> None:
    policy = make_policy(two, publish=False)
    assert propose(two, policy, client=two.session(getattr(two, who))).status_code == 403
    body = {"kind": "policy.publish", "subject": str(policy.id)}
    assert two.session(getattr(two, who)).post(CHANGES, body, format="json").status_code == 403


def test_a_stranger_finds_no_such_policy(two: Cast) -> None:
    policy = make_policy(two, publish=False)
    stranger = two.session(two.other_operator)
    assert propose(two, policy, client=stranger).status_code == 404
    body = {"kind": "policy.publish", "subject": str(policy.id)}
    assert stranger.post(CHANGES, body, format="json").status_code == 404
    assert "cross_tenant" in violation_kinds()


def test_a_service_publishes_nothing_that_its_responsible_person_could_not(two: Cast) -> None:
    policy = make_policy(two, publish=False)
    assert propose(two, policy, client=key_of(two, two.reviewer)).status_code == 403
    assert state(policy) == "draft"


def test_the_console_proposes_and_says_so(two: Cast) -> None:
    policy = make_policy(two, publish=False)
    answer = two.console(two.operator).post(page("policy", policy.id, "act", "publish"), follow=True)
    assert "a second person has to confirm it." in answer.content.decode()
    assert state(policy) == "draft"


# -- caps -------------------------------------------------------------------------------------------------------------
def organization_form(cast: Cast, **changes: Any) -> dict[str, Any]:
    now = cast.organization
    fields = (
        "name",
        "status",
        "capacity_units",
        "max_concurrency",
        "max_open_holds",
        "max_runs_per_min",
        "max_writes_per_run",
    )
    return {name: getattr(now, name) for name in fields} | {"regions": now.regions} | changes


def save(cast: Cast, **changes: Any) -> str:
    address = page("organization", cast.organization.id, "change")
    answer = cast.console(cast.operator).post(address, organization_form(cast, **changes), follow=True)
    assert answer.status_code == 200
    return answer.content.decode()


def test_a_form_that_raises_and_lowers_does_the_lowering_at_once(two: Cast) -> None:
    html = save(two, max_concurrency=60, max_runs_per_min=300)
    assert "What takes something away is in force. What widens is not yet." in html
    assert caps(two) == (50, 300, "active")
    with every_tenant():
        change = AuthorityChange.objects.get(kind="caps.raise")
    assert (change.before, change.after) == ({"max_concurrency": 50}, {"max_concurrency": 60})
    assert confirm(two, change.id, by=two.operator).status_code == 403
    assert confirm(two, change.id, by=two.second_operator).status_code == 200
    assert caps(two) == (60, 300, "active")


def test_lowering_and_suspending_need_one_person_and_coming_back_two(two: Cast) -> None:
    save(two, max_concurrency=10, status="suspended")
    assert caps(two) == (10, 600, "suspended")
    with every_tenant():
        assert not AuthorityChange.objects.filter(kind="caps.raise").exists()
    save(two, max_concurrency=10, status="active")
    assert caps(two) == (10, 600, "suspended")


def test_a_founder_raises_a_cap_at_once(cast: Cast) -> None:
    _ = cast.operator
    save(cast, max_concurrency=60)
    assert caps(cast)[0] == 60


def test_a_cap_that_was_lowered_since_makes_the_proposal_outdated(two: Cast) -> None:
    save(two, max_concurrency=60)
    save(two, max_concurrency=10)
    with every_tenant():
        change = AuthorityChange.objects.get(kind="caps.raise")
    assert confirm(two, change.id, by=two.second_operator).status_code == 409
    assert caps(two)[0] == 10


@pytest.mark.parametrize(
    "details",
    [
        {},
        {"max_concurrency": 10},
        {"max_concurrency": "60"},
        {"status": "suspended"},
        {"regions": ["XX"]},
        {"home": True},
    ],
)
def test_what_raises_nothing_is_refused(two: Cast, details: dict[str, Any]) -> None:
    body = {"kind": "caps.raise", "details": details}
    assert two.session(two.operator).post(CHANGES, body, format="json").status_code == 400


def test_another_region_waits_and_none_works_at_once(two: Cast) -> None:
    save(two, regions=["US", "EU"])
    with every_tenant():
        assert Organization.objects.get(id=two.organization.id).regions == ["US"]
    save(two, regions=[])
    with every_tenant():
        assert Organization.objects.get(id=two.organization.id).regions == []
