"""`/workflow-definitions` over HTTP: drafts, dry runs, clones, history; who may, and who finds nothing."""

from typing import Any

import pytest

from governance.ledger.models import LedgerEntry
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.factories import ProductFactory
from tests.governance.decide.support import actions, problem, violations
from tests.governance.support import row_counts
from tests.workflows.definition_support import URL, document, draft, product, published, stored, template
from workflows.definitions.models import WorkflowDefinition, WorkflowDefinitionRevision
from workflows.definitions.states import DEFINITION_MOVES, DefinitionStatus

NEW = {"slug": "triage", "definition": document()}


@pytest.fixture
def operator(cast: Cast) -> Any:
    return cast.session(cast.operator)


def revisions(definition_id: Any) -> list[WorkflowDefinitionRevision]:
    with every_tenant():
        return list(WorkflowDefinitionRevision.objects.filter(workflow_definition_id=definition_id).order_by("number"))


# -- drafts -----------------------------------------------------------------------------------------------------------
def test_a_draft_is_created_changed_and_read(cast: Cast, operator: Any) -> None:
    created = operator.post(URL, NEW | {"reason": "First draft"})
    assert created.status_code == 201, created.content
    row = created.json()
    assert (row["org_id"], row["product_id"], row["version"]) == (str(cast.organization.id), None, 1)
    assert (row["status"], row["is_template"], row["default_mode"]) == ("draft", False, "active")
    assert (row["name"], row["workflow_timeout_seconds"], row["contract"]) == ("AI only", 2592000, None)
    assert row["definition"] == document()
    one = f"{URL}/{row['id']}"
    changed = operator.patch(one, {"default_mode": "client_driven", "reason": "The portal drives"}).json()
    assert (changed["default_mode"], changed["definition"]["default_mode"]) == ("client_driven", "client_driven")
    assert operator.get(one).json() == changed
    assert actions(row["id"]) == ["definition.created", "definition.changed"]


def test_what_is_given_beside_the_document_is_written_into_it(cast: Cast, operator: Any) -> None:
    beside = {"name": "Ours", "default_mode": "client_driven", "workflow_timeout_seconds": 600}
    row = operator.post(URL, NEW | beside).json()
    assert {name: row[name] for name in beside} == beside
    assert {name: row["definition"][name] for name in beside} == beside


def test_the_slug_is_made_of_the_name_when_none_is_given(cast: Cast, operator: Any) -> None:
    assert operator.post(URL, {"definition": document(name="ai_only")}).json()["slug"] == "ai-only"
    nameless = operator.post(URL, {"definition": {"name": "???"}})
    assert problem(nameless) == (400, "invalid-input")
    assert nameless.json()["errors"][0]["pointer"] == "/slug"


def test_versions_count_up_per_organization_and_product(cast: Cast, operator: Any) -> None:
    derm, nails = product(cast), product(cast, "nails")
    made = [
        operator.post(URL, {"slug": slug, "definition": document(), "product_id": of and str(of.id)}).json()["version"]
        for slug, of in (("whole", None), ("whole", None), ("derm", derm), ("derm-2", derm), ("nails", nails))
    ]
    assert made == [1, 2, 1, 2, 1]
    other = cast.session(cast.other_operator).post(URL, NEW).json()
    assert other["version"] == 1


def test_a_slug_belongs_to_one_products_definitions(cast: Cast, operator: Any) -> None:
    draft(cast, of=product(cast))
    taken = NEW | {"product_id": str(product(cast, "nails").id)}
    assert problem(operator.post(URL, taken)) == (409, "already-exists")
    other = operator.post(URL, taken | {"slug": "free"}).json()
    assert problem(operator.patch(f"{URL}/{other['id']}", {"slug": "triage"})) == (409, "already-exists")
    assert operator.patch(f"{URL}/{other['id']}", {"slug": "free-too"}).json()["slug"] == "free-too"
    assert cast.session(cast.other_operator).post(URL, NEW).status_code == 201


def test_a_draft_may_have_faults_and_its_columns_then_hold_the_defaults(cast: Cast, operator: Any) -> None:
    odd = {"default_mode": "sideways", "workflow_timeout_seconds": True, "steps": [], "name": 7}
    row = operator.post(URL, {"slug": "odd", "definition": odd}).json()
    assert row["definition"] == odd
    assert (row["name"], row["default_mode"], row["workflow_timeout_seconds"]) == ("odd", "active", 2592000)


@pytest.mark.parametrize(
    "change",
    [
        {"colour": 1},
        {"definition": []},
        {"definition": None},
        {"slug": "A B"},
        {"default_mode": "sideways"},
        {"workflow_timeout_seconds": 0},
        {"product_id": "seven"},
        {"template_id": "0199a1c2-0000-7000-8000-000000000000"},
        {"reason": "x" * 281},
        {"name": ""},
    ],
)
def test_a_body_of_the_wrong_shape_is_400(cast: Cast, operator: Any, change: Any) -> None:
    before = row_counts()
    assert problem(operator.post(URL, NEW | change)) == (400, "invalid-input")
    assert row_counts() == before


def test_a_draft_needs_a_document_or_something_to_copy(cast: Cast, operator: Any) -> None:
    refused = operator.post(URL, {"slug": "triage"})
    assert problem(refused) == (400, "invalid-input")
    assert refused.json()["errors"][0]["pointer"] == "/definition"


@pytest.mark.parametrize(
    "change",
    [
        {"name": "For john.doe-q7x@example.com"},
        {"reason": "Mrs. Jane Quimbly-q7x asked, jane.q7x@example.com"},
        {"definition": document(description="Ask john.doe-q7x@example.com first")},
        {"definition": document() | {"steps": {"john.doe-q7x@example.com": {}}}},
    ],
)
def test_words_that_must_not_enter_the_record_are_422_in_a_draft_too(cast: Cast, operator: Any, change: Any) -> None:
    one = f"{URL}/{draft(cast).id}"
    for answer in (operator.post(URL, NEW | change), operator.patch(one, change)):
        assert problem(answer) == (422, "metadata-boundary")
        assert "q7x" not in answer.content.decode()


def test_only_drafts_change_and_the_attempt_is_on_record(cast: Cast, operator: Any) -> None:
    definition = published(cast)
    assert problem(operator.patch(f"{URL}/{definition.id}", {"name": "Other"})) == (409, "record-immutable")
    assert violations(cast.organization) == ["record_mutation"]
    assert stored(definition).name == "AI only"


def test_saving_the_same_again_changes_nothing(cast: Cast, operator: Any) -> None:
    definition = draft(cast)
    assert operator.patch(f"{URL}/{definition.id}", {"definition": document(), "slug": "triage"}).status_code == 200
    assert actions(definition.id) == ["definition.created"]


# -- history ----------------------------------------------------------------------------------------------------------
def test_the_history_says_what_changed_by_whom_and_why_and_gives_the_document_back(cast: Cast, operator: Any) -> None:
    made = operator.post(URL, NEW).json()
    url = f"{URL}/{made['id']}"
    slower = document()
    slower["steps"]["ai_review"]["timeout_seconds"] = 600
    operator.patch(url, {"definition": slower, "reason": "Slow models"})
    cast.api("orchestrator:write").patch(url, {"slug": "triage-2"})
    operator.post(f"{url}/publish")
    page = operator.get(f"{url}/revisions").json()
    assert [row["number"] for row in page["results"]] == [4, 3, 2, 1]
    newest, renamed, edited, first = page["results"]
    assert (edited["changed_by"], edited["changed_by_kind"], edited["reason"]) == ("alice", "person", "Slow models")
    assert edited["diff"] == {
        "definition": [
            {"op": "replace", "pointer": "/steps/ai_review/timeout_seconds", "before": 900, "after": 600},
        ]
    }
    assert renamed["diff"] == {"definition": [], "slug": {"before": "triage", "after": "triage-2"}}
    assert renamed["changed_by_kind"] == "service"
    assert newest["diff"] == {"definition": [], "status": {"before": "draft", "after": "active"}}
    assert first["sha256"] != edited["sha256"] == newest["sha256"] == operator.get(url).json()["snapshot_sha256"]


def test_a_revision_cannot_be_changed_afterwards(cast: Cast, operator: Any) -> None:
    definition = draft(cast)
    url = f"{URL}/{definition.id}/revisions"
    for method in ("post", "patch", "put", "delete"):
        assert problem(getattr(operator, method)(url, {}))[0] == 405


# -- the dry run ------------------------------------------------------------------------------------------------------
def test_validate_lists_every_finding_with_rule_place_message_and_suggestion(cast: Cast, operator: Any) -> None:
    faulty = document(start_step="consent_gat")
    faulty["steps"]["image_check"]["kind"] = "require_image"
    faulty["steps"]["halt_ai"]["params"]["reason_code"] = "ai_review_faild"
    definition = draft(cast, document=faulty)
    before = row_counts()
    answer = operator.post(f"{URL}/{definition.id}/validate").json()
    assert answer["valid"] is False
    found = {finding["pointer"]: finding for finding in answer["findings"]}
    assert found["/start_step"]["suggestion"] == "consent_gate"
    assert found["/steps/image_check/kind"]["suggestion"] == "require_images"
    assert found["/steps/halt_ai/params/reason_code"]["suggestion"] == "ai_review_failed"
    assert all(set(finding) == {"rule", "pointer", "message", "suggestion"} for finding in answer["findings"])
    assert operator.post(f"{URL}/{definition.id}/validate", {"definition": document()}).json() == {
        "valid": True,
        "findings": [],
    }
    assert row_counts() == before


def test_validate_judges_anything_and_stores_nothing(cast: Cast, operator: Any) -> None:
    url = f"{URL}/{draft(cast).id}/validate"
    for anything in ([], "text", 7, {}, {"steps": 3}, {"steps": {"a": None}, "start_step": []}):
        answer = operator.post(url, {"definition": anything})
        assert answer.status_code == 200, anything
        assert answer.json()["valid"] is False
    assert operator.post(f"{URL}/{template().id}/validate").json()["valid"] is True


def test_a_code_that_the_organization_switched_off_is_a_finding(cast: Cast, operator: Any) -> None:
    own = operator.post("/api/v1/reason-codes", {"scope": "halt", "code": "ours", "label": "Ours"}).json()
    ours = document()
    ours["steps"]["halt_ai"]["params"]["reason_code"] = "ours"
    url = f"{URL}/{draft(cast, document=ours).id}/validate"
    assert operator.post(url).json()["valid"] is True
    assert operator.delete(f"/api/v1/reason-codes/{own['id']}").status_code in {200, 204}
    assert [f["rule"] for f in operator.post(url).json()["findings"]] == ["halt_reason_exists"]


# -- clones -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("slug", ["ai-only", "ai-escalation-plus-sa-sample"])
def test_a_template_is_cloned_as_a_draft_of_ones_own(cast: Cast, operator: Any, slug: str) -> None:
    source = template(slug)
    made = operator.post(f"{URL}/{source.id}/clone")
    assert made.status_code == 201, made.content
    row = made.json()
    assert (row["definition"], row["slug"], row["status"]) == (source.definition, slug, "draft")
    assert (row["cloned_from"], row["is_template"], row["version"]) == (str(source.id), False, 1)
    assert actions(row["id"]) == ["definition.cloned"]


def test_a_clone_may_have_another_name_slug_product_and_mode(cast: Cast, operator: Any) -> None:
    of = product(cast)
    asked = {"name": "Ours", "slug": "ours", "product_id": str(of.id), "default_mode": "client_driven"}
    row = operator.post(f"{URL}/{template().id}/clone", asked).json()
    assert {name: row[name] for name in asked} == asked
    assert row["definition"]["name"] == "Ours"
    again = operator.post(URL, asked | {"template_id": str(template().id)}).json()
    assert (again["version"], again["cloned_from"]) == (2, str(template().id))


def test_a_clone_of_an_own_definition_is_the_next_version_for_its_product(cast: Cast, operator: Any) -> None:
    definition = published(cast, of=product(cast))
    row = operator.post(f"{URL}/{definition.id}/clone", {"reason": "Next"}).json()
    assert (row["slug"], row["version"], row["product_id"]) == ("triage", 2, str(definition.product_id))


def test_a_clones_slug_is_made_free_when_another_product_has_it(cast: Cast, operator: Any) -> None:
    url = f"{URL}/{template().id}/clone"
    bodies = [{}, {"product_id": str(product(cast).id)}, {"product_id": str(product(cast, "nails").id)}]
    assert [operator.post(url, body).json()["slug"] for body in bodies] == [
        "ai-only",
        "ai-only-dermatology",
        "ai-only-nails",
    ]
    taken = {"product_id": str(product(cast).id), "slug": "ai-only"}
    assert problem(operator.post(url, taken)) == (409, "already-exists")


def test_another_organizations_product_does_not_exist(cast: Cast, operator: Any) -> None:
    theirs = ProductFactory(organization=cast.other)
    for answer in (
        operator.post(URL, NEW | {"product_id": str(theirs.id)}),
        operator.post(f"{URL}/{template().id}/clone", {"product_id": str(theirs.id)}),
    ):
        assert problem(answer) == (404, "not-found")


def test_somebody_in_two_organizations_says_which_one_is_meant(cast: Cast) -> None:
    cast.person("bo", "operator", organization=cast.other)
    both = cast.session(cast.person("bo", "operator"))
    clone = f"{URL}/{template().id}/clone"
    for url, body in ((URL, NEW), (clone, {})):
        assert problem(both.post(url, body)) == (400, "invalid-input")
        assert both.post(url, body | {"org_id": str(cast.other.id)}).json()["org_id"] == str(cast.other.id)
        assert both.post(f"{url}?org_id={cast.organization.id}", body).status_code == 201
    own = draft(cast, slug="mine")
    assert both.post(f"{URL}/{own.id}/clone").json()["org_id"] == str(cast.organization.id)
    assert problem(both.post(f"{URL}/{own.id}/clone", {"org_id": str(cast.other.id)})) == (404, "not-found")


# -- moves ------------------------------------------------------------------------------------------------------------
VERBS = {"publish": "active", "archive": "archived"}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("status", [status.value for status in DefinitionStatus])
def test_every_state_and_every_move(cast: Cast, operator: Any, status: str, verb: str) -> None:
    definition = draft(cast)
    url = f"{URL}/{definition.id}"
    if status != "draft":
        assert operator.post(f"{url}/publish").status_code == 200
    if status == "archived":
        assert operator.post(f"{url}/archive").status_code == 200
    answer = operator.post(f"{url}/{verb}")
    # The way back from the archive is for the version before one that is unpublished.
    if (status, VERBS[verb]) in DEFINITION_MOVES - {("archived", "active")}:
        assert (answer.status_code, answer.json()["status"]) == (200, VERBS[verb])
    else:
        assert problem(answer) == (409, "wrong-state")
        assert stored(definition).state == status


@pytest.mark.parametrize("verb", ["publish", "archive"])
def test_a_template_is_nobodys_to_change(cast: Cast, operator: Any, verb: str) -> None:
    url = f"{URL}/{template().id}"
    assert problem(operator.post(f"{url}/{verb}")) == (409, "wrong-state")
    assert problem(operator.patch(url, {"name": "Ours"})) == (409, "wrong-state")
    assert template().name == "AI only"


# -- lists ------------------------------------------------------------------------------------------------------------
def test_the_list_is_filtered_paged_and_without_templates(cast: Cast, operator: Any) -> None:
    derm = product(cast)
    first, second, third = draft(cast), draft(cast, slug="derm", of=derm), published(cast, slug="other")

    def listed(query: str) -> list[str]:
        return [row["id"] for row in operator.get(f"{URL}?{query}").json()["results"]]

    assert listed("") == [str(row.id) for row in (third, second, first)]
    assert listed("status=active") == [str(third.id)]
    assert listed(f"product_id={derm.id}") == [str(second.id)]
    assert listed("slug=triage") == [str(first.id)]
    assert listed(f"org_id={cast.organization.id}&status=draft") == [str(second.id), str(first.id)]
    page = operator.get(f"{URL}?page_size=2").json()
    assert [row["id"] for row in operator.get(page["next"]).json()["results"]] == [str(first.id)]
    assert "definition" not in page["results"][0]
    assert page["results"][0]["contract"]["state"] == "draft"
    for query, kind in (("colour=red", "unknown-parameter"), ("status=lively", "invalid-input")):
        assert problem(operator.get(f"{URL}?{query}")) == (400, kind)


def test_the_administrators_key_may_name_any_organization(cast: Cast) -> None:
    definition = draft(cast)
    admin = cast.api("orchestrator:read", "orchestrator:write", "orchestrator:admin", organization=cast.other)
    where = f"?org_id={cast.organization.id}"
    assert [row["id"] for row in admin.get(URL + where).json()["results"]] == [str(definition.id)]
    assert admin.get(URL).json()["results"] == []
    assert admin.patch(f"{URL}/{definition.id}{where}", {"name": "Ours"}).status_code == 200
    assert admin.post(URL + where, NEW).json()["org_id"] == str(cast.organization.id)
    plain = cast.api("orchestrator:read", organization=cast.other)
    assert problem(plain.get(URL + where)) == (404, "not-found")


def test_everything_that_was_done_is_on_the_ledger_without_words_of_people(cast: Cast, operator: Any) -> None:
    made = operator.post(URL, NEW | {"reason": "zx81marker"}).json()
    operator.post(f"{URL}/{made['id']}/publish", {"reason": "zx81marker"})
    with every_tenant():
        entries = list(LedgerEntry.objects.filter(subject_id=made["id"]).order_by("id"))
        assert WorkflowDefinition.objects.get(id=made["id"]).state == "active"
    assert [entry.action for entry in entries] == ["definition.created", "definition.published"]
    assert {"slug", "version", "product", "revision", "document"} <= set(entries[0].payload)
    assert entries[1].payload["contract_state"] == "draft"
    assert "zx81marker" not in str([entry.payload for entry in entries])
