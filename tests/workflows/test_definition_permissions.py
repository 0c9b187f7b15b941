"""Every route of definitions by its owner, a stranger, the wrong role and the wrong scope."""

from typing import Any

import pytest
from rest_framework.test import APIClient

from tests.cast import Cast
from tests.governance.decide.support import actions, problem, violations
from tests.governance.support import row_counts
from tests.workflows.definition_support import URL, document, draft

NEW = {"slug": "triage", "definition": document()}
ROUTES: list[tuple[str, str, Any, str]] = [
    ("get", "", None, "orchestrator:read"),
    ("post", "", NEW, "orchestrator:write"),
    ("get", "/{id}", None, "orchestrator:read"),
    ("patch", "/{id}", {"name": "Other"}, "orchestrator:write"),
    ("post", "/{id}/clone", {}, "orchestrator:write"),
    ("post", "/{id}/validate", {}, "orchestrator:read"),
    ("get", "/{id}/revisions", None, "orchestrator:read"),
    ("post", "/{id}/publish", {}, "orchestrator:publish"),
    ("post", "/{id}/archive", {}, "orchestrator:publish"),
]
OTHER_SCOPES = {"orchestrator:read", "orchestrator:write", "orchestrator:publish", "orchestrator:intervene"}
each_route = pytest.mark.parametrize(("method", "path", "body", "scope"), ROUTES)


@each_route
def test_a_key_needs_exactly_this_scope(cast: Cast, method: str, path: str, body: Any, scope: str) -> None:
    url = URL + path.format(id=draft(cast).id)
    for other in OTHER_SCOPES - {scope}:
        refused = getattr(cast.api(other), method)(url, body)
        assert problem(refused) == (403, "scope-missing")
        assert refused.json()["required_scope"] == scope
    assert problem(getattr(APIClient(), method)(url, body)) == (401, "credential-missing")
    assert getattr(cast.api(scope), method)(url, body).status_code in {200, 201}


@each_route
def test_operators_do_everybody_with_a_role_reads_and_nobody_else_does(
    cast: Cast, method: str, path: str, body: Any, scope: str
) -> None:
    url = URL + path.format(id=draft(cast).id)
    before = row_counts()
    for who in (cast.auditor, cast.reviewer, cast.owner):
        answer = getattr(cast.session(who), method)(url, body)
        assert answer.status_code == (200 if scope == "orchestrator:read" else 403), who
    assert problem(getattr(cast.session(cast.nobody), method)(url, body)) == (403, "scope-missing")
    after = row_counts()
    assert {name: after[name] for name in before if name.startswith("workflows")} == {
        name: count for name, count in before.items() if name.startswith("workflows")
    }
    assert getattr(cast.session(cast.operator), method)(url, body).status_code in {200, 201}


@pytest.mark.parametrize(("method", "path", "body", "scope"), [route for route in ROUTES if route[1]])
def test_a_strangers_definition_does_not_exist(cast: Cast, method: str, path: str, body: Any, scope: str) -> None:
    definition = draft(cast)
    answer = getattr(cast.session(cast.other_operator), method)(URL + path.format(id=definition.id), body)
    assert problem(answer) == (404, "not-found")
    assert violations(cast.other) == ["cross_tenant"]
    assert set(actions(definition.id)) == {"definition.created", "violation.recorded"}
    assert cast.session(cast.other_operator).get(URL).json()["results"] == []
    missing = getattr(cast.session(cast.operator), method)(URL + path.format(id=cast.organization.id), body)
    assert problem(missing) == (404, "not-found")
