"""The first run: each step is known from the rows, and the line at its end works."""

import json
import re
import shlex
from html import unescape
from typing import Any

import pytest
from django.test import Client

from attempts.lifecycle.models import Attempt
from attempts.reviews.models import Review
from governance.contracts.models import Contract
from governance.contracts.rules.documents import validate_documents
from governance.contracts.rules.starters import STARTERS, attempt_example, curl_line, starter, starter_documents
from governance.people.models import ServiceAccount, User
from governance.policies.models import Policy
from governance.tenancy.models import Organization
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.governance.support import everything_stored, row_counts
from tests.governance.test_console import KEY, actions
from tests.governed import make_contract

START = "/admin/start/"
DONE = re.compile(r'<li class="hp-done" data-step="(\w+)"')
NEXT = re.compile(r'<li class="hp-next" data-step="(\w+)"')


def standing(console: Client) -> tuple[list[str], str]:
    shown = console.get(START).content.decode()
    following = NEXT.search(shown)
    return DONE.findall(shown), following[1] if following else ""


@pytest.fixture
def root(db: Any) -> Client:
    user = User.objects.create_superuser("root", password="a long enough pass phrase")
    return Cast.console(user)


def line_of(shown: Any) -> str:
    found = re.search(r'<pre[^>]*id="line"[^>]*>(.*?)</pre>', shown.content.decode(), re.DOTALL)
    assert found, shown.content
    return unescape(found[1])


def call(line: str) -> Any:
    """What the shell would do with the line."""
    words = shlex.split(line.replace("\\\n", " "))
    headers = dict(
        word.split(": ", 1) for word in words[words.index("-H") :] if ": " in word and not word.startswith("{")
    )
    url = next(word for word in words if word.startswith("http"))
    return Client().post(
        url.removeprefix("http://testserver"),
        words[words.index("-d") + 1],
        content_type=headers.pop("Content-Type"),
        headers=headers,
    )


def test_an_empty_installation_leads_to_an_attempt_that_waits_for_a_reviewer(root: Client) -> None:
    assert "Get started" in root.get("/admin/").content.decode()
    assert standing(root) == ([], "organization")
    made = {"slug": "first", "name": "First", "regions": ["US"], "status": "active", "capacity_units": 1}
    made |= {"max_concurrency": 10, "max_open_holds": 100, "max_runs_per_min": 60, "max_writes_per_run": 50}
    assert root.post("/admin/governance/organization/add/", made).status_code == 302
    assert standing(root) == (["organization"], "people")
    shown = root.post(f"{START}people/", {"username": "olga", "roles": ["owner", "reviewer"]})
    assert shown.status_code == 200
    assert "no-store" in shown["Cache-Control"]
    link = re.search(r"https://holdpoint\.example(/accounts/link/[^<\s]+)", shown.content.decode())
    assert link is not None
    assert Client().post(link[1], {"new": "correct horse battery", "again": "correct horse battery"}).status_code == 302
    assert standing(root)[1] == "account"
    assert root.post(f"{START}account/", {"slug": "caller", "description": ""}).status_code == 302
    assert root.post(f"{START}contract/", {"starter": "one-reviewer", "slug": "first-contract"}).status_code == 302
    assert standing(root) == (["organization", "people", "account", "contract"], "board")
    with every_tenant():
        contract = Contract.objects.get()
    owner = Cast.console(User.objects.get(username="olga"))
    approve_mine(owner, contract)
    assert standing(root)[1] == "open"
    assert root.post(f"/admin/governance/contract/{contract.id}/act/open/").status_code == 302
    assert standing(root)[1] == "call"
    shown = root.post(f"{START}call/")
    assert shown.status_code == 200
    assert "no-store" in shown["Cache-Control"]
    answer = call(line_of(shown))
    assert (answer.status_code, answer.json()["state"]) == (202, "review-required"), answer.content
    assert standing(root)[1] == "review"
    with every_tenant():
        assert Review.objects.get().attempt_id == Attempt.objects.get().id
    secret = KEY.search(line_of(shown))
    assert secret is not None
    assert secret[0].split("_", 2)[2] not in everything_stored()


def approve_mine(owner: Client, contract: Contract) -> None:
    address = f"/admin/governance/contract/{contract.id}/readiness/mine/"
    shown = owner.get(address).content.decode()
    seen = dict(re.findall(r'name="(seen_\w+)" value="(\w+)"', shown))
    assert len(seen) == 10
    assert owner.post(address, seen | {"rationale": "Read all of it"}).status_code == 302


def test_only_what_was_read_is_approved_and_each_area_by_itself(cast: Cast) -> None:
    contract = make_contract(cast)
    owner, operator = cast.console(cast.owner), cast.console(cast.operator)
    address = f"/admin/governance/contract/{contract.id}/readiness/mine/"
    seen = dict(re.findall(r'name="(seen_\w+)" value="(\w+)"', owner.get(address).content.decode()))
    with every_tenant():
        changed = contract.documents.get(area="throttles_and_misuse").document
    changed["limits"][0]["limit"] = 7
    edit = f"/admin/governance/contract/{contract.id}/readiness/throttles_and_misuse/edit/"
    assert operator.post(edit, {"document": json.dumps(changed)}).status_code == 302
    said = owner.post(address, seen | {"rationale": "Read all of it"}, follow=True).content.decode()
    assert "Approved: 9 of 10 areas." in said
    assert "has changed since you looked" in said
    assert actions().count("readiness.approved") == 9
    for who in (cast.operator, cast.auditor, cast.reviewer, cast.administrator):
        assert cast.console(who).get(address).status_code == 403
        assert cast.console(who).post(address, seen | {"rationale": "x"}).status_code == 403
    assert cast.console(cast.other_operator).get(address).status_code == 404


def test_a_starter_makes_a_complete_draft_and_its_policy_once(cast: Cast) -> None:
    console = cast.console(cast.operator)
    for slug in ("one", "two"):
        assert console.post(f"{START}contract/", {"starter": "two-reviewers", "slug": slug}).status_code == 302
    with every_tenant():
        assert Policy.objects.filter(slug="starter-two-reviewers", state="active").count() == 1
        assert Contract.objects.filter(policy_slug="starter-two-reviewers", state="draft").count() == 2
        assert {contract.documents.count() for contract in Contract.objects.all()} == {10}
    again = console.post(f"{START}contract/", {"starter": "two-reviewers", "slug": "two"})
    assert (again.status_code, "has a contract with this slug" in again.content.decode()) == (409, True)
    assert console.post(f"{START}contract/", {"starter": "nonsense", "slug": "x"}).status_code == 200


@pytest.mark.parametrize("one", STARTERS, ids=lambda one: one.name)
def test_every_starters_documents_are_valid(one: Any) -> None:
    assert validate_documents(starter_documents(one), effect=one.effect) == ()
    assert starter(one.name) is one


def test_the_line_survives_a_shell() -> None:
    line = curl_line(
        base_url="http://127.0.0.1:8000", slug="a", version=2, secret="hp_x_y", key="it's", body=attempt_example()
    )
    words = shlex.split(line.replace("\\\n", " "))
    assert words[:5] == ["curl", "-sS", "-X", "POST", "http://127.0.0.1:8000/api/v1/execution/a/2/attempts"]
    assert "Idempotency-Key: it's" in words
    assert json.loads(words[-1]) == attempt_example()


def test_only_those_who_set_up_have_this_page(cast: Cast) -> None:
    make_contract(cast)
    wrong = (cast.auditor, cast.reviewer, cast.owner, cast.nobody)
    stranger = cast.console(cast.other_operator)
    before = unsessioned(row_counts())
    for who in wrong:
        for path in (START, *(f"{START}{step}/" for step in ("people", "account", "contract", "call"))):
            assert cast.console(who).get(path).status_code == 403, (who, path)
            assert cast.console(who).post(path, {"slug": "x"}).status_code in {403, 405}, (who, path)
    assert Client().get(START).status_code == 302
    assert stranger.get(START, {"organization": str(cast.organization.id)}).status_code == 404
    foreign = {"username": "eve", "roles": ["operator"]}
    assert stranger.post(f"{START}people/?organization={cast.organization.id}", foreign).status_code == 404
    assert unsessioned(row_counts()) == before


def unsessioned(counts: dict[str, int]) -> dict[str, int]:
    """Signing in makes a row."""
    return {name: count for name, count in counts.items() if name != "django_session"}


def test_the_line_needs_an_open_contract_and_an_account(cast: Cast) -> None:
    console = cast.console(cast.operator)
    assert cast.organization
    refused = console.post(f"{START}call/")
    assert (refused.status_code, "You need an open contract" in refused.content.decode()) == (409, True)
    assert console.post(f"{START}nonsense/").status_code == 404


def test_wrong_addresses_and_taken_names_are_errors_on_the_form(cast: Cast) -> None:
    console = cast.console(cast.operator)
    assert cast.organization
    wrong = {"username": "petra", "email": "no address", "roles": ["reviewer"]}
    assert console.post(f"{START}people/", wrong).status_code == 200
    taken = console.post(f"{START}people/", wrong | {"username": "alice", "email": ""})
    assert taken.status_code == 409
    assert not User.objects.filter(username="petra").exists()


def test_an_operator_chooses_among_their_organizations(cast: Cast) -> None:
    cast.person("alice", "operator", organization=cast.other)
    console = cast.console(cast.operator)
    for organization in (cast.organization, cast.other):
        shown = console.get(START, {"organization": str(organization.id)}).content.decode()
        assert f"for <strong>{organization.name}</strong>" in shown
    console.post(f"{START}account/?organization={cast.other.id}", {"slug": "theirs", "description": ""})
    with every_tenant():
        assert ServiceAccount.objects.get(slug="theirs").organization_id == cast.other.id
        assert Organization.objects.count() == 2
