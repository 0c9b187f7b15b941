"""Every button of the console works for those who have it and is not shown to others. Looking changes nothing.

Who is let in where: tests/contract/test_permissions.py."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import transaction

from governance.contracts.models import Contract
from governance.policies.models import Policy
from governance.policies.services import policy_create
from governance.shutdown.models import Shutdown
from governance.shutdown.services import shutdown_engage
from governance.shutdown.states import ShutdownScope
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.governance.admin.support import browser, make_decisions, page
from tests.governance.authority.support import waits
from tests.governance.support import row_counts
from tests.governed import ALLOW, AT, approve, make_contract, open_contract


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


@contextmanager
def taken_back() -> Iterator[None]:
    """One world for all that is tried."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


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


def test_a_list_shows_the_rows_of_ones_own_organizations_only(world: World) -> None:
    stranger = browser(world.cast, "stranger")
    for name in LIST_PAGES:
        shown = stranger.get(page(name))
        assert shown.status_code == 200
        for secret in ("close-case", "standard", str(world.decision.id)):
            assert secret not in shown.content.decode(), name


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


def count(model: Any) -> int:
    with every_tenant():
        return int(model.objects.count())


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
    "publish": (
        lambda w: page("policy", w.policy.id, "act", "publish"),
        {},
        # Sven could confirm it.
        lambda w: state_of(w.policy) == "draft" and waits("policy.publish", w.policy.id),
    ),
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


@pytest.mark.parametrize("who", ["operator", "administrator"])
def test_an_operator_presses_it_and_it_happens(world: World, who: str) -> None:
    client = browser(world.cast, who)
    for name, (address, data, happened) in BUTTONS.items():
        with taken_back():
            answer = client.post(address(world), data)
            assert answer.status_code == 302, (name, answer.content.decode())
            assert happened(world), name


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


def test_adding_is_for_operators_of_that_organization(world: World) -> None:
    stranger, operator = (browser(world.cast, who) for who in ("stranger", "operator"))
    for address, data, model in ADDS.values():
        before = count(model)
        refused = stranger.post(address(world), data(world))
        assert refused.status_code in {200, 400}, "the form does not offer somebody else's organization"
        assert count(model) == before
        assert operator.post(address(world), data(world)).status_code == 302
        assert count(model) == before + 1


READ_ONLY_BUTTONS = ("Suspend", "Retire", "New version", "Discard draft", "Publish", "Archive", "Release", "Simulate")


def test_whoever_may_not_press_a_button_does_not_see_it(world: World) -> None:
    for who in ("auditor", "owner", "reviewer"):
        client = browser(world.cast, who)
        for name, address in ROW_PAGES.items():
            html = client.get(address(world)).content.decode()
            assert "hp-" in html, (who, name)
            assert not [button for button in READ_ONLY_BUTTONS if f">{button}</a>" in html], (who, name)
            assert "/add/" not in html, (who, name)


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
