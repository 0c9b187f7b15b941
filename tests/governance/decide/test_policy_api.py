"""`/policies` over HTTP: drafts, faults with their place, publishing; the next decision uses the new version."""

from typing import Any

import pytest
from rest_framework.test import APIClient

from governance.enforcement.models import EnforcementDecision
from governance.ledger.models import LedgerEntry
from governance.policies.models import Policy
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.governance.decide.support import actions, intake, problem, violations
from tests.governed import ALLOW, DENY, HOLD, make_policy, open_contract

URL = "/api/v1/policies"
NEW = {"slug": "standard", "title": "Standard", "rules": ALLOW}
BROKEN = [{"id": "low", "when": 'action.risk_tier = "low"', "verdict": "allow"}]


def test_a_draft_is_created_changed_and_published(cast: Cast, operator: Any) -> None:
    created = operator.post(URL, NEW)
    assert created.status_code == 201, created.content
    draft = created.json()
    assert (draft["state"], draft["version"], draft["rules"]) == ("draft", 1, ALLOW)
    one = f"{URL}/{draft['id']}"
    changed = operator.patch(one, {"title": "Stricter", "rules": DENY})
    assert (changed.json()["title"], changed.json()["rules"]) == ("Stricter", DENY)
    published = operator.post(f"{one}/publish")
    assert (published.json()["state"], len(published.json()["snapshot_sha256"])) == ("active", 64)
    assert operator.get(one).json() == published.json()
    assert actions(draft["id"]) == ["policy.created", "policy.changed", "policy.published"]


def test_publishing_archives_the_previous_version(cast: Cast, operator: Any) -> None:
    first = operator.post(f"{URL}/{operator.post(URL, NEW).json()['id']}/publish").json()
    second = operator.post(URL, NEW | {"rules": HOLD}).json()
    assert second["version"] == 2
    operator.post(f"{URL}/{second['id']}/publish")
    states = {row["version"]: row["state"] for row in operator.get(URL).json()["results"]}
    assert states == {1: "archived", 2: "active"}
    assert actions(first["id"])[-1] == "policy.archived"


def test_a_published_version_never_changes_and_the_attempt_is_on_record(cast: Cast, operator: Any) -> None:
    policy = make_policy(cast)
    assert problem(operator.patch(f"{URL}/{policy.id}", {"rules": DENY})) == (409, "record-immutable")
    assert violations(cast.organization) == ["record_mutation"]
    with every_tenant():
        assert Policy.objects.get(id=policy.id).rules == ALLOW


@pytest.mark.parametrize("moves", [["publish", "publish"], ["archive", "publish"], ["archive", "archive"]])
def test_a_move_from_the_wrong_state_is_409(cast: Cast, operator: Any, moves: list[str]) -> None:
    policy = make_policy(cast, publish=False)
    assert operator.post(f"{URL}/{policy.id}/{moves[0]}").status_code == 200
    assert problem(operator.post(f"{URL}/{policy.id}/{moves[1]}")) == (409, "wrong-state")


def test_a_draft_may_have_faults_and_validate_shows_each_with_a_caret(cast: Cast, operator: Any) -> None:
    rules = [*BROKEN, {"id": "low", "when": "true", "verdict": "deny"}, {"id": "who", "when": "true", "colour": "red"}]
    draft = operator.post(URL, NEW | {"rules": rules})
    assert draft.status_code == 201
    url = f"{URL}/{draft.json()['id']}"
    problems = operator.post(f"{url}/validate").json()["problems"]
    first = problems[0]
    assert first["pointer"] == "/rules/0/when"
    assert "^" in first["message"]
    assert "line 1" in first["message"]
    assert {found["pointer"] for found in problems} >= {"/rules/1/reason_code", "/rules/1/id", "/rules/2"}
    refused = operator.post(f"{url}/publish")
    assert problem(refused) == (400, "policy-invalid")
    assert [error["pointer"] for error in refused.json()["errors"]] == [found["pointer"] for found in problems]
    with every_tenant():
        assert Policy.objects.get().state == "draft"


@pytest.mark.parametrize(
    ("rule", "pointer"),
    [
        ({"reason_code": "because", "verdict": "deny"}, "/rules/0/reason_code"),
        ({"verdict": "needs_approval", "tier": "wizards"}, "/rules/0/tier"),
        ({"verdict": "needs_approval"}, "/rules/0/tier"),
        ({"tier": "customer_clinician"}, "/rules/0"),
        ({"buckets": [{"tier": "sa_qa"}]}, "/rules/0"),
        ({"verdict": "needs_approval", "buckets": []}, "/rules/0/buckets"),
        ({"verdict": "needs_approval", "buckets": {"tier": "sa_qa"}}, "/rules/0/buckets"),
        ({"verdict": "needs_approval", "buckets": [{"approvals_required": 1}]}, "/rules/0/buckets/0"),
        ({"verdict": "needs_approval", "buckets": [{"tier": "sa_qa", "colour": 1}]}, "/rules/0/buckets/0"),
        (
            {"verdict": "needs_approval", "buckets": [{"tier": "sa_qa", "approvals_required": 0}]},
            "/rules/0/buckets/0/approvals_required",
        ),
        ({"verdict": "needs_approval", "buckets": [{"tier": "wizards"}]}, "/rules/0/buckets/0/tier"),
        ({"verdict": "needs_approval", "buckets": [{"tier": "sa_qa"}, {"tier": "sa_qa"}]}, "/rules/0/buckets/1/tier"),
        ({"verdict": "needs_approval", "buckets": [{"tier": "sa_qa"}], "tier": "sa_qa"}, "/rules/0"),
        ({"verdict": "needs_approval", "buckets": [{"tier": "sa_qa"}], "approvals_required": 2}, "/rules/0"),
        ({"when": "patient.name == 1"}, "/rules/0/when"),
        ({"when": "action.colour == 1"}, "/rules/0/when"),
        ({"id": "Not An Id"}, "/rules/0/id"),
        ({"verdict": "maybe"}, "/rules/0/verdict"),
        ({"when": 7}, "/rules/0/when"),
    ],
)
def test_every_fault_has_its_place(cast: Cast, operator: Any, rule: Any, pointer: str) -> None:
    draft = operator.post(URL, NEW | {"rules": [ALLOW[0] | rule]}).json()
    problems = operator.post(f"{URL}/{draft['id']}/validate").json()["problems"]
    assert [found["pointer"] for found in problems] == [pointer]


def test_a_policy_without_rules_cannot_be_published(cast: Cast, operator: Any) -> None:
    draft = operator.post(URL, NEW | {"rules": []}).json()
    assert problem(operator.post(f"{URL}/{draft['id']}/publish")) == (400, "policy-invalid")


@pytest.mark.parametrize(
    "change", [{"colour": 1}, {"rules": {}}, {"rules": ["x"]}, {"title": ""}, {"slug": "A B"}, {"rules": ALLOW * 201}]
)
def test_a_body_of_the_wrong_shape_is_400(cast: Cast, operator: Any, change: Any) -> None:
    assert problem(operator.post(URL, NEW | change)) == (400, "invalid-input")


@pytest.mark.parametrize(
    "change",
    [
        {"title": "For john.doe-q7x@example.com"},
        {"rules": [ALLOW[0] | {"when": 'metadata.owner == "john.doe-q7x@example.com"'}]},
        {"rules": [ALLOW[0] | {"description": "Mrs. Jane Quimbly-q7x asked for it"}]},
        {"rules": [ALLOW[0] | {"john.doe-q7x@example.com": 1}]},
        {"rules": [ALLOW[0] | {"when": "true " * 300 + "john.doe-q7x@example.com"}]},
    ],
)
def test_words_that_must_not_enter_the_record_are_422_in_a_draft_too(cast: Cast, operator: Any, change: Any) -> None:
    policy = make_policy(cast, publish=False)
    for answer in (operator.post(URL, NEW | change), operator.patch(f"{URL}/{policy.id}", change)):
        assert problem(answer) == (422, "metadata-boundary")
        assert "q7x" not in answer.content.decode()


def test_the_next_decision_uses_the_version_that_was_just_published(cast: Cast, operator: Any, caller: Any) -> None:
    open_contract(cast)
    assert intake(caller).status_code == 201
    for number, (rules, status) in enumerate([(HOLD, 202), (DENY, 403), (ALLOW, 201)], start=2):
        draft = operator.post(URL, NEW | {"rules": rules}).json()
        assert operator.post(f"{URL}/{draft['id']}/publish").status_code == 200
        assert intake(caller, key=f"key-0000000{number}").status_code == status
    with every_tenant():
        versions = EnforcementDecision.objects.order_by("id").values_list("policy_version", "rule_id")
        assert list(versions) == [(1, "all"), (2, "hold"), (3, "never"), (4, "all")]


def test_without_an_active_version_everything_is_denied(cast: Cast, operator: Any, caller: Any) -> None:
    open_contract(cast)
    with every_tenant():
        active = Policy.objects.get()
    assert operator.post(f"{URL}/{active.id}/archive").status_code == 200
    answer = intake(caller)
    assert problem(answer) == (403, "attempt-denied")
    assert answer.json()["reason_code"] == "no_active_policy"


def test_lists_are_filtered_and_an_unknown_filter_is_400(cast: Cast, operator: Any) -> None:
    first, second = make_policy(cast), make_policy(cast, slug="other", publish=False)

    def listed(query: str) -> set[str]:
        return {row["id"] for row in operator.get(f"{URL}?{query}").json()["results"]}

    assert listed("") == {str(first.id), str(second.id)}
    assert listed("state=active") == {str(first.id)}
    assert listed("slug=other") == {str(second.id)}
    assert problem(operator.get(f"{URL}?colour=red")) == (400, "unknown-parameter")


WRITING = [
    ("post", "", NEW),
    ("patch", "/{id}", {"title": "Other"}),
    ("post", "/{id}/publish", None),
    ("post", "/{id}/archive", None),
]
READING = [("get", "/{id}", None), ("post", "/{id}/validate", None), ("post", "/{id}/simulate", {"last": 5})]


@pytest.mark.parametrize(("method", "path", "body"), WRITING)
def test_only_operators_and_keys_that_may_write_change_policies(cast: Cast, method: str, path: str, body: Any) -> None:
    policy = make_policy(cast, publish=False)
    url = URL + path.format(id=policy.id)
    for client in (cast.session(cast.auditor), cast.session(cast.reviewer), cast.api("governance:read")):
        assert problem(getattr(client, method)(url, body)) == (403, "scope-missing")
    assert problem(getattr(APIClient(), method)(url, body)) == (401, "credential-missing")
    assert actions(policy.id) == ["policy.created"]
    assert getattr(cast.api("governance:write"), method)(url, body).status_code in {200, 201}


@pytest.mark.parametrize(("method", "path", "body"), [*WRITING[1:], *READING])
def test_a_strangers_policy_does_not_exist(cast: Cast, stranger: Any, method: str, path: str, body: Any) -> None:
    policy = make_policy(cast, publish=False)
    assert problem(getattr(stranger, method)(URL + path.format(id=policy.id), body)) == (404, "not-found")
    assert violations(cast.other) == ["cross_tenant"]
    with every_tenant():
        assert set(LedgerEntry.objects.filter(subject_id=policy.id).values_list("action", flat=True)) == {
            "policy.created",
            "violation.recorded",
        }


@pytest.mark.parametrize(("method", "path", "body"), READING)
def test_auditors_read_validate_and_simulate(cast: Cast, method: str, path: str, body: Any) -> None:
    policy = make_policy(cast, publish=False)
    url = URL + path.format(id=policy.id)
    assert getattr(cast.session(cast.auditor), method)(url, body).status_code == 200
    assert problem(getattr(cast.session(cast.nobody), method)(url, body)) == (403, "scope-missing")
    assert problem(getattr(APIClient(), method)(url, body)) == (401, "credential-missing")
