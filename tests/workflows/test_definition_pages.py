"""Definitions in the console: what each page shows, what each button does, and who may."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from governance.services.contract import contract_open
from reasoncodes.tenancy import every_tenant
from tests.cast import Cast
from tests.factories import ProductFactory
from tests.governance.admin.support import browser
from tests.governance.decide.support import actions
from tests.governance.support import row_counts
from tests.governed import AT, approve, make_contract
from tests.workflows.definition_support import URL, document, draft, product, published, stored, template
from workflows.models import WorkflowDefinition
from workflows.services.definition_contract import contract_preview
from workflows.services.definition_publish import definition_publish

INSIDE = ("operator", "auditor", "owner", "reviewer", "administrator")
OUTSIDE = ("stranger", "nobody", "anonymous")
OPERATORS = ("operator", "administrator")


def page(*rest: Any) -> str:
    return "/".join(["/admin/workflows/workflowdefinition", *map(str, rest), ""])


class World:
    """A draft, an active one whose contract is closed, and a template."""

    def __init__(self, cast: Cast) -> None:
        self.cast = cast
        self.active = published(cast, slug="unmistakable")
        self.draft = draft(cast, slug="unmistakable", name="ai_plus_clinician")
        self.template = template()


@pytest.fixture
def world(cast: Cast) -> World:
    return World(cast)


def faulty() -> dict[str, Any]:
    changed = document(start_step="consent_gat")
    changed["steps"]["halt_ai"]["params"]["reason_code"] = "ai_review_faild"
    return changed


def exists(**where: Any) -> bool:
    with every_tenant():
        return bool(WorkflowDefinition.objects.filter(is_template=False, **where).exists())


# -- reading ----------------------------------------------------------------------------------------------------------
ROW_PAGES: dict[str, Callable[[World], str]] = {
    "draft": lambda w: page(w.draft.id, "change"),
    "active": lambda w: page(w.active.id, "change"),
    "compare": lambda w: page(w.draft.id, "compare"),
}


@pytest.mark.parametrize("name", ROW_PAGES)
def test_everybody_with_a_role_reads_and_nobody_else_finds_it(world: World, name: str) -> None:
    for who in INSIDE:
        assert browser(world.cast, who).get(ROW_PAGES[name](world)).status_code == 200, who
    for who in OUTSIDE:
        answer = browser(world.cast, who).get(ROW_PAGES[name](world))
        assert answer.status_code in {302, 403, 404}, who
        assert b"unmistakable" not in answer.content


def test_the_list_shows_ones_own_and_no_templates(world: World) -> None:
    for who in INSIDE:
        html = browser(world.cast, who).get(page()).content.decode()
        assert html.count(">unmistakable<") == 2, who
        assert str(world.template.id) not in html
    stranger = browser(world.cast, "stranger").get(page())
    assert stranger.status_code == 200
    assert b"unmistakable" not in stranger.content
    assert browser(world.cast, "nobody").get(page()).status_code == 403
    assert browser(world.cast, "anonymous").get(page()).status_code == 302


def test_the_list_is_filtered_and_searched(world: World) -> None:
    client = browser(world.cast, "operator")
    derm = draft(world.cast, slug="derm", of=product(world.cast))

    def found(query: str) -> set[str]:
        html = client.get(page() + query).content.decode()
        return set(re.findall(r"/workflowdefinition/([0-9a-f-]{36})/change/", html))

    assert found("?status=active") == {str(world.active.id)}
    assert found("?status=draft") == {str(world.draft.id), str(derm.id)}
    assert found(f"?product__id__exact={derm.product_id}") == {str(derm.id)}
    assert found("?q=clinician") == {str(world.draft.id)}
    assert found(f"?q={derm.id}") == {str(derm.id)}
    assert found("?default_mode=client_driven") == set()


def test_templates_are_for_everybody_with_a_role_and_cloned_by_operators(world: World) -> None:
    for who in (*INSIDE, "stranger"):
        answer = browser(world.cast, who).get(page("templates"))
        html = answer.content.decode()
        assert answer.status_code == 200
        assert html.count("<svg") >= 6
        assert (page(world.template.id, "act", "clone") in html) == (who in (*OPERATORS, "stranger")), who
        assert browser(world.cast, who).get(page(world.template.id, "change")).status_code == 200
    assert browser(world.cast, "nobody").get(page("templates")).status_code == 403
    assert browser(world.cast, "anonymous").get(page("templates")).status_code == 302


def test_both_pages_are_in_the_menu(world: World) -> None:
    html = browser(world.cast, "operator").get("/admin/").content.decode()
    assert f'href="{page()}"' in html
    assert f'href="{page("templates")}"' in html
    assert f'href="{page("templates")}"' not in browser(world.cast, "nobody").get("/admin/").content.decode()


def test_a_page_has_the_picture_the_history_the_versions_and_the_contracts_state(world: World) -> None:
    html = browser(world.cast, "operator").get(page(world.active.id, "change")).content.decode()
    assert 'class="wf-graph"' in html
    assert "consent_gate" in html
    assert "<div>Published.</div>" in html
    assert page(world.draft.id, "change") in html
    assert "Closed for now: 10 of ten areas wait for an owner" in html
    assert world.active.contract is not None
    approve(world.cast, world.active.contract)
    html = browser(world.cast, "operator").get(page(world.active.id, "change")).content.decode()
    assert "an operator has to open it" in html


def test_what_somebody_wrote_into_a_draft_is_only_text_on_the_page(cast: Cast) -> None:
    script = "<script>alert(1)</script>"
    steps = document()["steps"] | {"x": {"kind": script, "transitions": {script: script}}}
    odd = draft(cast, document=document(steps=steps, description=script) | {"name": script})
    for address in (page(odd.id, "change"), page(odd.id, "act", "edit"), page(odd.id, "compare"), page()):
        answer = cast.console(cast.operator).get(address)
        assert answer.status_code == 200
        assert script not in answer.content.decode()


@pytest.mark.parametrize("content", [{}, {"steps": []}, {"steps": {"a": None}}, {"steps": {"a": {"transitions": 3}}}])
def test_a_draft_full_of_faults_still_has_its_pages(cast: Cast, content: Any) -> None:
    odd = draft(cast, document=content)
    client = cast.console(cast.operator)
    for rest in (("change",), ("act", "edit"), ("act", "publish"), ("act", "clone"), ("compare",)):
        assert client.get(page(odd.id, *rest)).status_code == 200, rest


def test_findings_lead_to_their_place_in_the_editor(cast: Cast) -> None:
    odd = draft(cast, document=faulty())
    edit = page(odd.id, "act", "edit")
    operator, auditor = (cast.console(user).get(page(odd.id, "change")) for user in (cast.operator, cast.auditor))
    assert f'href="{edit}#/steps/halt_ai/params/reason_code"' in operator.content.decode()
    assert edit not in auditor.content.decode()
    assert "halt_reason_exists" in auditor.content.decode()


# -- comparing --------------------------------------------------------------------------------------------------------
def test_versions_and_revisions_are_compared_in_words_and_line_by_line(world: World) -> None:
    client = browser(world.cast, "auditor")
    html = client.get(page(world.draft.id, "compare")).content.decode()
    assert "Step customer_review (request_human_review) added." in html
    assert "<ins>+" in html
    cast = world.cast
    cast.session(cast.operator).patch(f"{URL}/{world.draft.id}", {"default_mode": "client_driven"})
    query = "?before=revision:1&after=revision:2"
    html = client.get(page(world.draft.id, "compare") + query).content.decode()
    assert "default_mode changed from" in html
    assert "<del>-   &quot;default_mode&quot;: &quot;active&quot;,</del>" in html
    same = client.get(page(world.draft.id, "compare") + "?before=revision:1&after=revision:1").content.decode()
    assert "They are the same." in same


def test_only_what_belongs_together_is_compared(world: World) -> None:
    other = draft(world.cast, slug="other", of=product(world.cast))
    client = browser(world.cast, "operator")
    names = [f"version:{other.id}", "version:x", f"version:{world.template.id}", "revision:0", "revision:99"]
    for name in [*names, "revision:x", "colour:1", "revision:²"]:
        assert client.get(page(world.draft.id, "compare") + f"?before={name}").status_code == 404, name


# -- live validation --------------------------------------------------------------------------------------------------
def test_live_validation_gives_findings_and_the_picture_and_saves_nothing(world: World) -> None:
    client, address = browser(world.cast, "operator"), page("validate") + f"?organization={world.cast.organization.id}"
    before = row_counts()
    found = client.post(address, {"definition": json.dumps(faulty())}).json()
    assert {finding["pointer"] for finding in found["findings"]} >= {
        "/start_step",
        "/steps/halt_ai/params/reason_code",
    }
    assert found["picture"].startswith("<svg")
    assert "style=" not in found["picture"]
    assert client.post(address, {"definition": json.dumps(document())}).json()["findings"] == []
    broken = client.post(address, {"definition": "{"}).json()
    assert (broken["findings"][0]["rule"], broken["picture"]) == ("json", None)
    for odd in ("[]", "7", '"text"', "{}", '{"steps": {"a": {}}}', ""):
        assert client.post(address, {"definition": odd}).json()["findings"], odd
    assert row_counts() == before


def test_live_validation_is_for_operators_of_that_organization(world: World) -> None:
    address = page("validate") + f"?organization={world.cast.organization.id}"
    for who in ("auditor", "owner", "reviewer", "stranger", "nobody"):
        assert browser(world.cast, who).post(address, {"definition": "{}"}).status_code == 403, who
    client = browser(world.cast, "operator")
    assert client.get(address).status_code == 405
    for odd in ("", "?organization=x", f"?organization={world.cast.other.id}"):
        assert client.post(page("validate") + odd, {"definition": "{}"}).status_code == 403, odd


# -- buttons ----------------------------------------------------------------------------------------------------------
Button = tuple[Callable[[World], str], Callable[[World], dict[str, Any]], Callable[[World], bool]]
BUTTONS: dict[str, Button] = {
    "edit": (
        lambda w: page(w.draft.id, "act", "edit"),
        lambda w: {"slug": "renamed", "definition": json.dumps(document()), "reason": "Simpler", "revision": "1"},
        lambda w: exists(slug="renamed", name="AI only"),
    ),
    "validate": (lambda w: page(w.draft.id, "act", "validate"), lambda w: {}, lambda w: exists(status="draft")),
    "publish": (
        lambda w: page(w.draft.id, "act", "publish"),
        lambda w: {"policy_slug": "", "risk_tier": "", "review_owner": "", "reason": ""},
        lambda w: stored(w.draft).status == "active" and stored(w.active).status == "archived",
    ),
    "archive": (
        lambda w: page(w.active.id, "act", "archive"),
        lambda w: {"reason": "Not used"},
        lambda w: stored(w.active).status == "archived",
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
    address, data, happened = BUTTONS[name]
    answer = browser(world.cast, who).post(address(world), data(world))
    assert answer.status_code == 302, answer.content.decode()
    assert happened(world)


@pytest.mark.parametrize("who", ["auditor", "owner", "reviewer", "nobody", "anonymous"])
@pytest.mark.parametrize("name", BUTTONS)
def test_everybody_else_is_refused_and_nothing_happens(world: World, name: str, who: str) -> None:
    address, data, _ = BUTTONS[name]
    client = browser(world.cast, who)
    before = row_counts(), stored(world.draft).status, stored(world.active).status
    for answer in (client.get(address(world)), client.post(address(world), data(world))):
        assert answer.status_code in {302, 403, 404}
        assert answer.status_code != 302 or "/login/" in answer["Location"]
    assert (row_counts(), stored(world.draft).status, stored(world.active).status) == before


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
    assert "Contract unmistakable/1 was never opened and is retired." in html
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
    assert "It cannot be published: " in html
    assert 'class="hp-button hp-primary"' not in html
    client = cast.console(cast.operator)
    for verb in ("publish", "validate"):
        answer = client.post(page(odd.id, "act", verb), {"reason": ""})
        assert answer.status_code == 422
        assert "/start_step" in answer.content.decode()
    assert stored(odd).status == "draft"


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
    assert "find no definition any more" in html
    assert (
        "find no definition"
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
    assert "another organization&#x27;s product" in mixed.content.decode()
    assert client.post(page(template().id, "act", "clone"), data | {"organization": cast.other.id}).status_code == 302
    assert exists(slug="ours", organization=cast.other)


# -- cost -------------------------------------------------------------------------------------------------------------
def queries(cast: Cast, address: str) -> int:
    client = cast.console(cast.operator)
    client.get(address)
    with CaptureQueriesContext(connection) as found:
        assert client.get(address).status_code == 200
    return len(found)


def test_the_pages_cost_the_same_with_five_definitions_and_with_fifty(cast: Cast) -> None:
    for _ in range(5):
        row = published(cast)
    few = queries(cast, page()), queries(cast, page(row.id, "change"))
    for _ in range(25):
        published(cast)
    assert (queries(cast, page()), queries(cast, page(row.id, "change"))) == few
    assert max(few) <= 35
