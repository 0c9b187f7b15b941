"""Definitions in the console: what each page shows, to whom, and what it costs."""

import json
import re
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.cast import Cast
from tests.governance.admin.support import browser
from tests.governance.support import row_counts
from tests.governed import approve
from tests.workflows.definition_console import INSIDE, OPERATORS, OUTSIDE, ROW_PAGES, World, faulty, page
from tests.workflows.definition_support import URL, document, draft, product, published


@pytest.fixture
def world(cast: Cast) -> World:
    return World(cast)


# -- reading ----------------------------------------------------------------------------------------------------------


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
    assert "Closed: 10 of ten areas wait for an owner" in html
    assert world.active.contract is not None
    approve(world.cast, world.active.contract)
    html = browser(world.cast, "operator").get(page(world.active.id, "change")).content.decode()
    assert "An operator has to open the contract" in html


def test_what_somebody_wrote_into_a_draft_is_only_text_on_the_page(cast: Cast) -> None:
    script = "<script>alert(1)"  # whole elements are refused
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
    assert "They are identical." in same


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
