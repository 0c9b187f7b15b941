"""The buttons of a definition: what each says first, what it does, and who may press it."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from governance.contracts.services.contracts import contract_open
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.factories import ProductFactory
from tests.governance.admin.support import browser
from tests.governance.authority.support import waits
from tests.governance.decide.support import actions
from tests.governance.support import row_counts
from tests.governed import AT, approve, make_contract
from tests.workflows.definition_console import OPERATORS, ROW_PAGES, World, exists, faulty, page
from tests.workflows.definition_support import URL, document, draft, product, published, stored, template
from workflows.definitions.models import WorkflowDefinition
from workflows.definitions.services.contract import contract_preview
from workflows.definitions.services.publish import definition_publish


@pytest.fixture
def world(cast: Cast) -> World:
    return World(cast)


# -- buttons ----------------------------------------------------------------------------------------------------------
Button = tuple[Callable[[World], str], Callable[[World], dict[str, Any]], Callable[[World], bool]]
BUTTONS: dict[str, Button] = {
    "edit": (
        lambda w: page(w.draft.id, "act", "edit"),
        lambda w: {"slug": "renamed", "definition": json.dumps(document()), "reason": "Simpler", "revision": "1"},
        lambda w: exists(slug="renamed", name="AI only"),
    ),
    "validate": (lambda w: page(w.draft.id, "act", "validate"), lambda w: {}, lambda w: exists(state="draft")),
    "publish": (
        lambda w: page(w.draft.id, "act", "publish"),
        lambda w: {"policy_slug": "", "risk_tier": "", "review_owner": "", "reason": ""},
        lambda w: stored(w.draft).state == "draft" and waits("definition.publish", w.draft.id),
    ),
    "archive": (
        lambda w: page(w.active.id, "act", "archive"),
        lambda w: {"reason": "Not used"},
        lambda w: stored(w.active).state == "archived",
    ),
    "clone": (
        lambda w: page(w.active.id, "act", "clone"),
        lambda w: {"organization": w.cast.organization.id, "product": "", "name": "Ours", "slug": "", "reason": ""},
        lambda w: exists(name="Ours", version=3, slug="unmistakable"),
    ),
    "clone a template": (
        lambda w: page(w.template.id, "act", "clone"),
        lambda w: {"organization": w.cast.organization.id, "product": "", "name": "Mine", "slug": "", "reason": ""},
        lambda w: exists(name="Mine", cloned_from=w.template),
    ),
    "add": (
        lambda w: page("add"),
        lambda w: {
            "organization": w.cast.organization.id,
            "product": "",
            "slug": "brand-new",
            "definition": json.dumps(document()),
            "reason": "",
        },
        lambda w: exists(slug="brand-new"),
    ),
}


@pytest.mark.parametrize("who", OPERATORS)
@pytest.mark.parametrize("name", BUTTONS)
def test_an_operator_presses_it_and_it_happens(world: World, name: str, who: str) -> None:
    _ = world.cast.second_operator  # who would confirm: without one, the founder publishes alone
    address, data, happened = BUTTONS[name]
    answer = browser(world.cast, who).post(address(world), data(world))
    assert answer.status_code == 302, answer.content.decode()
    assert happened(world)


@pytest.mark.parametrize("who", ["auditor", "owner", "reviewer", "nobody", "anonymous"])
@pytest.mark.parametrize("name", BUTTONS)
def test_everybody_else_is_refused_and_nothing_happens(world: World, name: str, who: str) -> None:
    address, data, _ = BUTTONS[name]
    client = browser(world.cast, who)
    before = row_counts(), stored(world.draft).state, stored(world.active).state
    for answer in (client.get(address(world)), client.post(address(world), data(world))):
        assert answer.status_code in {302, 403, 404}
        assert answer.status_code != 302 or "/login/" in answer["Location"]
    assert (row_counts(), stored(world.draft).state, stored(world.active).state) == before


@pytest.mark.parametrize("name", BUTTONS)
def test_a_stranger_never_reaches_another_organization(world: World, name: str) -> None:
    address, data, _ = BUTTONS[name]
    client = browser(world.cast, "stranger")
    before = {table: count for table, count in row_counts().items() if table.startswith("workflows")}
    answer = client.post(address(world), data(world))
    # Adding and cloning a template are theirs to do; the form does not offer somebody else's organization.
    assert answer.status_code == (200 if name in {"add", "clone a template"} else 404)
    assert {table: count for table, count in row_counts().items() if table.startswith("workflows")} == before


def test_looking_at_every_page_changes_nothing(world: World) -> None:
    client = browser(world.cast, "operator")
    client.get(page())
    before = row_counts()
    addresses = [address(world) for address in ROW_PAGES.values()]
    addresses += [address(world) for address, _, _ in BUTTONS.values()]
    for address in [*addresses, page(), page("templates")]:
        assert client.get(address).status_code == 200, address
    assert row_counts() == before


def test_only_the_buttons_that_fit_the_state_are_offered(world: World) -> None:
    client = browser(world.cast, "operator")
    verbs = ("edit", "validate", "publish", "clone", "archive")

    def offered(row: WorkflowDefinition) -> list[str]:
        html = client.get(page(row.id, "change")).content.decode()
        return [verb for verb in verbs if page(row.id, "act", verb) in html]

    assert offered(world.draft) == ["edit", "validate", "publish", "clone", "archive"]
    assert offered(world.active) == ["validate", "clone", "archive"]
    assert offered(world.template) == ["clone"]
    client.post(page(world.active.id, "act", "archive"), {"reason": ""})
    assert offered(world.active) == ["clone"]
    auditor = browser(world.cast, "auditor")
    for row in (world.draft, world.active, world.template):
        assert "/act/" not in auditor.get(page(row.id, "change")).content.decode()


# -- what a button says first -----------------------------------------------------------------------------------------
def publish_page(cast: Cast, definition: WorkflowDefinition) -> str:
    html = cast.console(cast.operator).get(page(definition.id, "act", "publish")).content.decode()
    return " ".join(html.split())


def test_publishing_says_what_is_archived_and_what_the_contract_waits_for(world: World) -> None:
    cast = world.cast
    html = publish_page(cast, world.draft)
    assert "active now, is archived" in html
    assert "Contract unmistakable/1, which was never opened, is retired." in html
    assert "unmistakable/2</strong>, which stays <strong>closed</strong> until the owners of 10 areas" in html
    assert "Step customer_review (request_human_review) added." in html
    assert world.active.contract is not None
    approve(cast, world.active.contract)
    with every_tenant():
        actor = cast.actor(cast.operator, [cast.organization])
        contract_open(actor=actor, at=AT, contract_id=world.active.contract.id)
    html = publish_page(cast, world.draft)
    assert "unmistakable/2</strong>, which is <strong>open at once</strong>" in html
    answer = cast.console(cast.operator).post(page(world.draft.id, "act", "publish"), {"reason": ""}, follow=True)
    assert "Contract unmistakable/2 is open" in answer.content.decode()


def test_the_first_one_of_a_product_says_so(cast: Cast) -> None:
    html = publish_page(cast, draft(cast, of=product(cast)))
    assert "No definition is active for Dermatology now" in html


def test_a_faulty_draft_shows_its_findings_instead_of_a_button(cast: Cast) -> None:
    odd = draft(cast, document=faulty())
    html = publish_page(cast, odd)
    assert "You cannot publish it: " in html
    assert 'class="hp-button hp-primary"' not in html
    client = cast.console(cast.operator)
    for verb in ("publish", "validate"):
        answer = client.post(page(odd.id, "act", verb), {"reason": ""})
        assert answer.status_code == 422
        assert "/start_step" in answer.content.decode()
    assert stored(odd).state == "draft"


def test_a_slug_of_another_contract_is_said_before_the_button_is_pressed(cast: Cast) -> None:
    make_contract(cast, slug="taken")
    html = publish_page(cast, draft(cast, slug="taken"))
    assert "names a contract that is no workflow&#x27;s" in html
    assert 'class="hp-button hp-primary"' not in html


def test_the_preview_of_the_contract_is_what_publishing_does(cast: Cast) -> None:
    actor = cast.actor(cast.operator, [cast.organization])
    with every_tenant():
        for name, approved in (("ai_only", 4), ("ai_only", 0), ("clinician_only", 10), ("ai_only", 0), ("ai_only", 0)):
            row = draft(cast, name=name)
            preview = contract_preview(definition=row)
            found = definition_publish(actor=actor, at=AT, definition_id=row.id)
            assert preview.version == found.contract.version
            assert list(preview.missing) == [area.area for area in found.missing]
            for area in found.missing[:approved]:
                approve(cast, found.contract, area.area)


def test_archiving_the_active_one_says_what_new_cases_will_find(world: World) -> None:
    html = browser(world.cast, "operator").get(page(world.active.id, "act", "archive")).content.decode()
    assert "will have no definition" in html
    assert (
        "will have no definition"
        not in browser(world.cast, "operator").get(page(world.draft.id, "act", "archive")).content.decode()
    )


# -- editing ----------------------------------------------------------------------------------------------------------
def test_the_editor_shows_the_steps_in_the_order_of_work(cast: Cast) -> None:
    answer = cast.console(cast.operator).get(page(draft(cast).id, "act", "edit"))
    shown = json.loads(answer.context["form"]["definition"].value())
    assert list(shown) == list(document())
    assert list(shown["steps"])[:2] == ["consent_gate", "image_check"]
    assert list(shown["steps"]["ai_review"])[:2] == ["kind", "params"]
    assert shown == document()


def test_a_draft_that_somebody_else_changed_meanwhile_is_not_overwritten(cast: Cast) -> None:
    row = draft(cast)
    cast.session(cast.operator).patch(f"{URL}/{row.id}", {"name": "Theirs"})
    data = {"slug": "triage", "definition": json.dumps(document()), "reason": "", "revision": "1"}
    client = cast.console(cast.operator)
    answer = client.post(page(row.id, "act", "edit"), data)
    assert answer.status_code == 409
    assert "Somebody changed this draft meanwhile" in answer.content.decode()
    assert stored(row).name == "Theirs"
    assert client.post(page(row.id, "act", "edit"), data | {"revision": "2"}).status_code == 302


@pytest.mark.parametrize("text", ["{", "[]", '"text"', "", '{"a": 1, "a": 2}'])
def test_what_is_no_json_object_is_not_saved(cast: Cast, text: str) -> None:
    row = draft(cast)
    data = {"slug": "triage", "definition": text, "reason": "", "revision": "1"}
    answer = cast.console(cast.operator).post(page(row.id, "act", "edit"), data)
    assert answer.status_code == 200
    assert "hp-error" in answer.content.decode()
    assert actions(row.id) == ["definition.created"]


def test_a_draft_is_saved_with_faults_but_not_with_people_in_it(cast: Cast) -> None:
    row = draft(cast)
    client, data = cast.console(cast.operator), {"slug": "triage", "reason": "", "revision": "1"}
    assert client.post(page(row.id, "act", "edit"), data | {"definition": json.dumps(faulty())}).status_code == 302
    person = json.dumps(document(description="Ask john.doe-q7x@example.com"))
    answer = client.post(page(row.id, "act", "edit"), data | {"definition": person, "revision": "2"})
    assert answer.status_code == 422
    assert "/definition/description" in answer.content.decode()
    assert stored(row).definition == faulty()


def test_a_published_one_is_not_edited(cast: Cast) -> None:
    row = published(cast)
    data = {"slug": "triage", "definition": json.dumps(faulty()), "reason": "", "revision": ""}
    assert cast.console(cast.operator).post(page(row.id, "act", "edit"), data).status_code == 409
    assert stored(row).definition == document()


def test_a_product_of_another_organization_is_not_offered(cast: Cast) -> None:
    theirs = ProductFactory(organization=cast.other, name="Theirs")
    client = cast.console(cast.operator)
    for address in (page("add"), page(template().id, "act", "clone")):
        html = client.get(address).content.decode()
        assert "Theirs" not in html
        assert str(cast.other.id) not in html
    data = {"organization": cast.organization.id, "product": theirs.id, "name": "Ours", "slug": "ours", "reason": ""}
    assert client.post(page(template().id, "act", "clone"), data).status_code == 200
    assert not exists(slug="ours")


def test_somebody_in_two_organizations_chooses_and_cannot_mix_them(cast: Cast) -> None:
    theirs = ProductFactory(organization=cast.other, name="Theirs")
    cast.person("bo", "operator", organization=cast.other)
    client = cast.console(cast.person("bo", "operator"))
    data = {"organization": cast.organization.id, "product": theirs.id, "name": "Ours", "slug": "ours", "reason": ""}
    mixed = client.post(page(template().id, "act", "clone"), data)
    assert "This product belongs to another organization" in mixed.content.decode()
    assert client.post(page(template().id, "act", "clone"), data | {"organization": cast.other.id}).status_code == 302
    assert exists(slug="ours", organization=cast.other)
