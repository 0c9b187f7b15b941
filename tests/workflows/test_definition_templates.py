"""The six templates: there after every migrate, everybody's to read and clone, nobody's to change."""

from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext

from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.governance.decide.support import actions, problem
from tests.governance.support import row_counts
from tests.governed import AT
from tests.workflows.definition_support import URL, template
from workflows.definitions.models import WorkflowDefinition, WorkflowDefinitionRevision
from workflows.definitions.rules.diff import patched
from workflows.definitions.rules.starters.starters import NAMES, starters
from workflows.definitions.services import create as template_adopt
from workflows.definitions.services.create import templates_adopt
from workflows.definitions.services.document import document_findings

TEMPLATES = "/api/v1/workflow-templates"


def test_there_is_one_for_each_starter(db: None) -> None:
    with every_tenant():
        rows = WorkflowDefinition.objects.filter(is_template=True)
        assert {row.slug: row.definition for row in rows} == {
            name.replace("_", "-"): document for name, document in starters().items()
        }
        assert {(row.organization_id, row.product_id, row.version) for row in rows} == {(None, None, 1)}
        assert all(document_findings(organization_id=None, document=row.definition) == [] for row in rows)
        assert {tuple(actions(row.id)) for row in rows} == {("definition.created",)}


def test_migrating_again_changes_nothing_and_costs_one_query(db: None) -> None:
    before = row_counts()
    with CaptureQueriesContext(connection) as queries:
        assert templates_adopt(at=AT) == []
    assert len(queries) == 1
    call_command("migrate", verbosity=0)
    assert row_counts() == before


def test_a_newer_starter_replaces_the_template_and_says_what_changed(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    clone = cast.session(cast.operator).post(f"{URL}/{template().id}/clone").json()
    newer = starters()
    newer["ai_only"]["steps"]["ai_review"]["timeout_seconds"] = 600
    monkeypatch.setattr(template_adopt, "starters", lambda: newer)
    assert templates_adopt(at=AT) == ["ai-only"]
    assert templates_adopt(at=AT) == []
    row = template()
    assert (row.version, row.definition, row.updated_at) == (2, newer["ai_only"], AT)
    assert actions(row.id) == ["definition.created", "definition.changed"]
    with every_tenant():
        revisions = WorkflowDefinitionRevision.objects.filter(workflow_definition=row).order_by("number")
        rebuilt: Any = {}
        for revision in revisions:
            rebuilt = patched(rebuilt, revision.diff["definition"])
        assert rebuilt == newer["ai_only"]
        assert WorkflowDefinition.objects.get(id=clone["id"]).definition == starters()["ai_only"]


def test_they_are_listed_and_read_by_everybody_with_a_role(cast: Cast) -> None:
    readers = [cast.session(user) for user in (cast.operator, cast.auditor, cast.reviewer, cast.other_operator)]
    for reader in [*readers, cast.api("orchestrator:read")]:
        listed = reader.get(TEMPLATES).json()["results"]
        assert {row["slug"] for row in listed} == {name.replace("_", "-") for name in NAMES}
        assert all(row["is_template"] and row["org_id"] is None for row in listed)
        assert "definition" not in listed[0]
        one = reader.get(f"{TEMPLATES}/{template().id}").json()
        assert one["definition"] == starters()["ai_only"]
    assert problem(cast.session(cast.nobody).get(TEMPLATES)) == (403, "scope-missing")
    assert problem(cast.api("orchestrator:write").get(TEMPLATES)) == (403, "scope-missing")


def test_an_organizations_definition_is_no_template(cast: Cast) -> None:
    operator = cast.session(cast.operator)
    clone = operator.post(f"{URL}/{template().id}/clone").json()
    assert problem(operator.get(f"{TEMPLATES}/{clone['id']}")) == (404, "not-found")
    assert problem(operator.get(f"{TEMPLATES}/{cast.organization.id}")) == (404, "not-found")
    assert problem(operator.post(f"{TEMPLATES}/{template().id}", {})) == (405, "method-not-allowed")
    assert operator.get(f"{URL}/{template().id}").json()["is_template"] is True
