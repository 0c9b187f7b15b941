"""Policies in the console: live validation with a caret, publishing with a difference, simulation that streams."""

import json
from typing import Any

import pytest

from governance.policies.models import Policy
from governance.policies.services import policy_create, policy_publish
from reasoncodes.base.actors import SYSTEM
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.governance.admin.support import browser, make_decisions, page
from tests.governance.support import row_counts
from tests.governed import ALLOW, AT, DENY, HOLD, make_policy, open_contract

BROKEN = [{"id": "odd", "when": "metadata.hour > ", "verdict": "deny", "reason_code": "polcy_denied"}]


def draft(cast: Cast, rules: list[dict[str, Any]], slug: str = "standard") -> Policy:
    return make_policy(cast, rules=rules, slug=slug, publish=False)


def test_live_validation_shows_the_caret_and_the_nearest_name(cast: Cast) -> None:
    address = page("policy", "validate") + f"?organization={cast.organization.id}"
    client = cast.console(cast.operator)
    found = client.post(address, {"rules": json.dumps(BROKEN)}).json()["problems"]
    by_place = {problem["pointer"]: problem["message"] for problem in found}
    assert by_place["/rules/0/when"].splitlines()[-1].strip() == "^"
    assert "did you mean policy_denied?" in by_place["/rules/0/reason_code"]
    assert client.post(address, {"rules": json.dumps(ALLOW)}).json() == {"problems": []}
    assert client.post(address, {"rules": "["}).json()["problems"][0]["rule"] == "json"


def test_live_validation_is_for_operators_of_that_organization(cast: Cast) -> None:
    address = page("policy", "validate") + f"?organization={cast.organization.id}"
    for who in ("auditor", "owner", "reviewer", "stranger"):
        assert browser(cast, who).post(address, {"rules": "[]"}).status_code == 403, who
    assert cast.console(cast.operator).get(address).status_code == 405
    assert cast.console(cast.operator).post(page("policy", "validate"), {"rules": "[]"}).status_code == 403


def test_a_draft_is_saved_with_faults_and_its_page_lists_them(cast: Cast) -> None:
    client = cast.console(cast.operator)
    answer = client.post(
        page("policy", "add"),
        {"organization": cast.organization.id, "slug": "odd", "title": "Odd", "rules": json.dumps(BROKEN)},
        follow=True,
    )
    html = answer.content.decode()
    assert "cannot publish this draft yet: 2 problems" in html
    assert '<pre class="hp-caret">expected a value but found the end' in html
    with every_tenant():
        policy = Policy.objects.get(slug="odd")
    publish = page("policy", policy.id, "act", "publish")
    assert 'class="hp-button hp-primary"' not in client.get(publish).content.decode()
    assert client.post(publish).status_code == 400
    with every_tenant():
        assert Policy.objects.get(slug="odd").state == "draft"


@pytest.mark.parametrize("rules", ["{", "{}", "[1]", '"text"'])
def test_what_is_no_list_of_objects_is_not_saved(cast: Cast, rules: str) -> None:
    policy = draft(cast, ALLOW)
    answer = cast.console(cast.operator).post(
        page("policy", policy.id, "act", "edit"), {"title": "Other", "rules": rules}
    )
    assert answer.status_code == 200
    assert "hp-error" in answer.content.decode()
    with every_tenant():
        assert Policy.objects.get(id=policy.id).rules == ALLOW


def test_a_published_version_is_not_edited(cast: Cast) -> None:
    policy = make_policy(cast)
    answer = cast.console(cast.operator).post(
        page("policy", policy.id, "act", "edit"), {"title": "Other", "rules": json.dumps(DENY)}
    )
    assert answer.status_code == 409
    with every_tenant():
        assert Policy.objects.get(id=policy.id).rules == ALLOW


def test_publishing_shows_what_changes_against_the_active_version(cast: Cast) -> None:
    make_policy(cast, rules=[*DENY, *HOLD])
    policy = draft(cast, [HOLD[0] | {"approvals_required": 2}, *ALLOW])
    answer = cast.console(cast.operator).get(page("policy", policy.id, "act", "publish"))
    kinds = {change.rule_id: change.kind for change in answer.context["changes"]}
    assert kinds == {"never": "removed", "hold": "changed", "all": "added"}
    assert "/approvals_required" in answer.content.decode()


def test_another_organizations_active_version_is_not_compared_with(cast: Cast) -> None:
    with every_tenant():
        other = policy_create(
            actor=cast.actor(cast.other_operator, [cast.other]),
            at=AT,
            organization=cast.other,
            slug="standard",
            title="Theirs",
            rules=DENY,
        )
    both = cast.person("bo", "operator")
    cast.person("bo", "operator", organization=cast.other)
    with every_tenant():
        policy_publish(actor=SYSTEM, at=AT, policy_id=other.id)
    policy = draft(cast, ALLOW)
    answer = cast.console(both).get(page("policy", policy.id, "act", "publish"))
    assert answer.context["active"] is None


# -- simulation -------------------------------------------------------------------------------------------------------
def streamed(answer: Any) -> list[dict[str, Any]]:
    return [json.loads(line) for line in b"".join(answer.streaming_content).splitlines()]


def test_simulation_streams_the_changes_and_the_counts(cast: Cast) -> None:
    contract = open_contract(cast)
    decisions = make_decisions(cast, contract, count=3)
    policy = draft(cast, DENY)
    client = cast.console(cast.operator)
    before = row_counts()
    answer = client.post(page("policy", policy.id, "simulate", "stream"), {"last": "1000"})
    assert answer["Content-Type"] == "application/x-ndjson"
    found = streamed(answer)
    assert {line["decision_id"] for line in found if line["type"] == "change"} == {str(row.id) for row in decisions}
    assert found[-1] == {
        "type": "summary",
        "decided": 3,
        "changed": 3,
        "unreadable": 0,
        "loosened": 0,
        "by_move": {"allow -> deny": 3},
        "by_rule": {"never": 3},
    }
    assert row_counts() == before


def test_simulation_works_without_a_script_up_to_a_thousand(cast: Cast) -> None:
    contract = open_contract(cast)
    (decision,) = make_decisions(cast, contract)
    policy = draft(cast, DENY)
    client = cast.console(cast.operator)
    html = client.post(page("policy", policy.id, "simulate"), {"last": "1000"}).content.decode()
    assert "<strong>1 would change</strong>" in html
    assert page("enforcementdecision", decision.id, "change") in html
    assert "allow -&gt; deny" in html
    html = client.post(page("policy", policy.id, "simulate"), {"last": "10000"}).content.decode()
    assert "Without JavaScript, choose at most 1,000" in html


def test_simulation_says_so_when_nothing_was_decided_yet(cast: Cast) -> None:
    policy = draft(cast, DENY)
    html = cast.console(cast.operator).post(page("policy", policy.id, "simulate"), {"last": "100"}).content.decode()
    assert "no recorded decision under this policy yet" in html


def test_a_draft_with_faults_is_not_simulated(cast: Cast) -> None:
    policy = draft(cast, BROKEN)
    client = cast.console(cast.operator)
    answer = client.post(page("policy", policy.id, "simulate", "stream"), {"last": "100"})
    assert answer.status_code == 400
    assert answer.json()["problems"][0]["pointer"] == "/rules/0/when"
    assert client.post(page("policy", policy.id, "simulate"), {"last": "100"}).status_code == 400


def test_simulation_stays_in_the_policys_own_organization(cast: Cast) -> None:
    """A person with roles in two organizations, or an administrator, must not mix two policies of the same name."""
    make_decisions(cast, open_contract(cast), count=2)
    with every_tenant():
        theirs = policy_create(
            actor=cast.actor(cast.other_operator, [cast.other]),
            at=AT,
            organization=cast.other,
            slug="standard",
            title="Theirs",
            rules=DENY,
        )
    client = cast.console(cast.administrator)
    assert streamed(client.post(page("policy", theirs.id, "simulate", "stream"), {"last": "100"}))[-1]["decided"] == 0
    assert (
        client.post(page("policy", theirs.id, "simulate"), {"last": "100"}).context["result"]["tally"]["decided"] == 0
    )


@pytest.mark.parametrize("rest", [("simulate",), ("simulate", "stream")])
def test_simulation_is_for_operators(cast: Cast, rest: tuple[str, ...]) -> None:
    policy = draft(cast, DENY)
    for who in ("auditor", "owner", "reviewer"):
        assert browser(cast, who).post(page("policy", policy.id, *rest), {"last": "100"}).status_code == 403, who
    assert browser(cast, "stranger").post(page("policy", policy.id, *rest), {"last": "100"}).status_code == 404
    assert cast.console(cast.operator).get(page("policy", policy.id, "simulate", "stream")).status_code == 405
