"""Every page and every button of the console, tried by everybody. Looking changes nothing."""

from collections.abc import Callable
from typing import Any

import pytest

from governance.models import Contract, Policy, Shutdown
from governance.services.policy import policy_create
from governance.services.shutdown import shutdown_engage
from governance.states import ShutdownScope
from reasoncodes.tenancy import every_tenant
from tests.cast import Cast
from tests.governance.admin.support import browser, make_decisions, page
from tests.governance.support import row_counts
from tests.governed import ALLOW, AT, approve, make_contract, open_contract

INSIDE = ("operator", "auditor", "owner", "reviewer", "administrator")
OUTSIDE = ("stranger", "nobody", "anonymous")
OPERATORS = ("operator", "administrator")


class World:
    """One of everything."""

    def __init__(self, cast: Cast) -> None:
        self.cast = cast
        actor = cast.actor(cast.operator, [cast.organization])
        self.open = open_contract(cast)
        self.draft = make_contract(cast, slug="draft")
        self.ready = make_contract(cast, slug="ready")
        approve(cast, self.ready)
        (self.decision,) = make_decisions(cast, self.open)
        with every_tenant():
            self.policy = policy_create(
                actor=actor, at=AT, organization=cast.organization, slug="standard", title="Next", rules=ALLOW
            )
            self.active = Policy.objects.get(slug="standard", state="active")
            self.shutdown = shutdown_engage(
                actor=cast.actor(cast.person("sven", "operator"), [cast.organization]),
                at=AT,
                scope=ShutdownScope.CONTRACT,
                organization_id=cast.organization.id,
                target="draft",
                reason_code="planned_maintenance",
            )


@pytest.fixture
def world(cast: Cast) -> World:
    return World(cast)


ROW_PAGES: dict[str, Callable[[World], str]] = {
    "contract": lambda w: page("contract", w.open.id, "change"),
    "draft": lambda w: page("contract", w.draft.id, "change"),
    "board": lambda w: page("contract", w.draft.id, "readiness"),
    "area": lambda w: page("contract", w.draft.id, "readiness", "metadata_boundary"),
    "policy": lambda w: page("policy", w.policy.id, "change"),
    "decision": lambda w: page("enforcementdecision", w.decision.id, "change"),
    "shutdown": lambda w: page("shutdown", w.shutdown.id, "change"),
}
LIST_PAGES = ("contract", "policy", "enforcementdecision", "shutdown", "regionprofile")


@pytest.mark.parametrize("name", ROW_PAGES)
def test_everybody_with_a_role_reads_and_nobody_else_finds_it(world: World, name: str) -> None:
    url = ROW_PAGES[name](world)
    for who in INSIDE:
        assert browser(world.cast, who).get(url).status_code == 200, who
    for who in OUTSIDE:
        answer = browser(world.cast, who).get(url)
        assert answer.status_code in {302, 403, 404}, who
        assert b"close-case" not in answer.content


@pytest.mark.parametrize("name", LIST_PAGES)
def test_a_list_shows_the_rows_of_ones_own_organizations_only(world: World, name: str) -> None:
    for who in INSIDE:
        assert browser(world.cast, who).get(page(name)).status_code == 200, who
    stranger = browser(world.cast, "stranger").get(page(name))
    assert stranger.status_code == 200
    for secret in ("close-case", "standard", str(world.decision.id)):
        assert secret not in stranger.content.decode()
    assert browser(world.cast, "nobody").get(page(name)).status_code == 403
    assert browser(world.cast, "anonymous").get(page(name)).status_code == 302


def test_violations_are_for_operators_and_auditors(world: World) -> None:
    readers = {
        who
        for who in (*INSIDE, *OUTSIDE)
        if browser(world.cast, who).get(page("governanceviolation")).status_code == 200
    }
    assert readers == {"operator", "auditor", "administrator", "stranger"}


# Each button: its address, what is posted, and what is true afterwards when it worked.
Button = tuple[Callable[[World], str], dict[str, Any], Callable[[World], bool]]


def state_of(row: Any) -> str:
    with every_tenant():
        return str(type(row).objects.get(pk=row.pk).state)


REASON = {"reason_code": "planned_maintenance", "note": ""}
CORE = {
    "title": "Another title",
    "effect": "once",
    "risk_tier": "high",
    "adapter": "external",
    "review_owner": "customer_clinician",
    "policy_slug": "standard",
}


def exists(model: Any, **where: Any) -> bool:
    with every_tenant():
        return bool(model.objects.filter(**where).exists())


BUTTONS: dict[str, Button] = {
    "suspend": (
        lambda w: page("contract", w.open.id, "act", "suspend"),
        REASON,
        lambda w: state_of(w.open) == "suspended",
    ),
    "retire": (lambda w: page("contract", w.open.id, "act", "retire"), REASON, lambda w: state_of(w.open) == "retired"),
    "open": (lambda w: page("contract", w.ready.id, "act", "open"), {}, lambda w: state_of(w.ready) == "open"),
    "new version": (
        lambda w: page("contract", w.open.id, "act", "new-version"),
        {},
        lambda w: exists(Contract, slug="close-case", version=2),
    ),
    "discard": (
        lambda w: page("contract", w.draft.id, "act", "discard"),
        {},
        lambda w: not exists(Contract, slug="draft"),
    ),
    "edit": (
        lambda w: page("contract", w.draft.id, "act", "edit"),
        CORE,
        lambda w: exists(Contract, title="Another title"),
    ),
    "edit document": (
        lambda w: page("contract", w.draft.id, "readiness", "retry_and_replay", "edit"),
        {"reset": "1"},
        lambda w: True,
    ),
    "publish": (lambda w: page("policy", w.policy.id, "act", "publish"), {}, lambda w: state_of(w.policy) == "active"),
    "archive": (
        lambda w: page("policy", w.policy.id, "act", "archive"),
        {},
        lambda w: state_of(w.policy) == "archived",
    ),
    "edit policy": (
        lambda w: page("policy", w.policy.id, "act", "edit"),
        {"title": "Renamed", "rules": "[]"},
        lambda w: exists(Policy, title="Renamed"),
    ),
    "new policy version": (
        lambda w: page("policy", w.active.id, "act", "new-version"),
        {},
        lambda w: exists(Policy, version=3),
    ),
    "release": (
        lambda w: page("shutdown", w.shutdown.id, "act", "release"),
        {"note": ""},
        lambda w: state_of(w.shutdown) == "released",
    ),
}


@pytest.mark.parametrize("who", OPERATORS)
@pytest.mark.parametrize("name", BUTTONS)
def test_an_operator_presses_it_and_it_happens(world: World, name: str, who: str) -> None:
    address, data, happened = BUTTONS[name]
    answer = browser(world.cast, who).post(address(world), data)
    assert answer.status_code == 302, answer.content.decode()
    assert happened(world)


@pytest.mark.parametrize("who", ["auditor", "owner", "reviewer", "stranger", "nobody", "anonymous"])
@pytest.mark.parametrize("name", BUTTONS)
def test_everybody_else_is_refused_and_nothing_happens(world: World, name: str, who: str) -> None:
    address, data, _ = BUTTONS[name]
    client = browser(world.cast, who)
    before = row_counts(), state_of(world.open), state_of(world.shutdown), state_of(world.policy), state_of(world.ready)
    for answer in (client.get(address(world)), client.post(address(world), data)):
        assert answer.status_code in {302, 403, 404}
        assert answer.status_code != 302 or "/login/" in answer["Location"]
    after = row_counts(), state_of(world.open), state_of(world.shutdown), state_of(world.policy), state_of(world.ready)
    assert before == after


ADDS: dict[str, tuple[Callable[[World], str], Callable[[World], dict[str, Any]], Any]] = {
    "contract": (
        lambda w: page("contract", "add"),
        lambda w: {**CORE, "organization": w.cast.organization.id, "slug": "brand-new"},
        Contract,
    ),
    "policy": (
        lambda w: page("policy", "add"),
        lambda w: {"organization": w.cast.organization.id, "slug": "brand-new", "title": "New", "rules": "[]"},
        Policy,
    ),
    "shutdown": (
        lambda w: page("shutdown", "add") + f"?scope=organization&organization={w.cast.organization.id}",
        lambda w: REASON,
        Shutdown,
    ),
}


@pytest.mark.parametrize("name", ADDS)
def test_adding_is_for_operators_of_that_organization(world: World, name: str) -> None:
    address, data, model = ADDS[name]

    def count() -> int:
        with every_tenant():
            return int(model.objects.count())

    before = count()
    for who in ("auditor", "owner", "reviewer", "nobody", "anonymous"):
        client = browser(world.cast, who)
        assert client.get(address(world)).status_code in {302, 403}, who
        assert client.post(address(world), data(world)).status_code in {302, 403}, who
    stranger = browser(world.cast, "stranger").post(address(world), data(world))
    assert stranger.status_code in {200, 400}, "the form does not offer somebody else's organization"
    assert count() == before
    assert browser(world.cast, "operator").post(address(world), data(world)).status_code == 302
    assert count() == before + 1


READ_ONLY_BUTTONS = ("Suspend", "Retire", "New version", "Discard draft", "Publish", "Archive", "Release", "Simulate")


@pytest.mark.parametrize("who", ["auditor", "owner", "reviewer"])
def test_whoever_may_not_press_a_button_does_not_see_it(world: World, who: str) -> None:
    client = browser(world.cast, who)
    for address in ROW_PAGES.values():
        html = client.get(address(world)).content.decode()
        assert not [button for button in READ_ONLY_BUTTONS if f">{button}</a>" in html]
        assert "/add/" not in html


def test_an_operator_sees_the_buttons_that_fit_the_state_and_no_others(world: World) -> None:
    client = browser(world.cast, "operator")
    html = client.get(page("contract", world.open.id, "change")).content.decode()
    assert [
        verb for verb in ("edit", "open", "suspend", "retire", "new-version", "discard") if f"/act/{verb}/" in html
    ] == [
        "suspend",
        "retire",
        "new-version",
    ]
    html = client.get(page("contract", world.draft.id, "change")).content.decode()
    assert [
        verb for verb in ("edit", "open", "suspend", "retire", "new-version", "discard") if f"/act/{verb}/" in html
    ] == [
        "edit",
        "open",
        "retire",
        "discard",
    ]


def test_looking_at_every_page_changes_nothing(world: World) -> None:
    client = browser(world.cast, "operator")
    before = row_counts()
    addresses = [address(world) for address in ROW_PAGES.values()]
    addresses += [address(world) for address, _, _ in BUTTONS.values()]
    addresses += [address(world) for address, _, _ in ADDS.values()]
    addresses += [page(name) for name in LIST_PAGES] + ["/admin/", page("policy", world.policy.id, "simulate")]
    addresses += [page("enforcementdecision", world.decision.id, "act", "re-evaluate")]
    for address in addresses:
        assert client.get(address).status_code == 200, address
    assert row_counts() == before
