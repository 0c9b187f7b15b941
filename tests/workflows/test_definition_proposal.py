"""A definition is published by two people: the second is no author, and confirms exactly what was proposed."""

from typing import Any

import pytest

from governance.authority.models import AuthorityChange
from governance.policies.models import Policy
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.governance.authority.support import CHANGES, change_of, confirm, key_of, violation_kinds
from tests.workflows.definition_support import URL, document, draft, published, stored
from workflows.definitions.models import WorkflowDefinition

SCOPES = ("orchestrator:read", "orchestrator:write", "orchestrator:publish", "governance:write")


@pytest.fixture
def two(cast: Cast) -> Cast:
    _ = cast.operator, cast.second_operator
    return cast


def propose(cast: Cast, definition: WorkflowDefinition, *, client: Any = None, **terms: Any) -> Any:
    return (client or cast.session(cast.operator)).post(f"{URL}/{definition.id}/publish", terms, format="json")


def renamed(name: str) -> dict[str, Any]:
    return {"name": name}


def test_a_founder_publishes_at_once(cast: Cast) -> None:
    answer = propose(cast, draft(cast))
    assert (answer.status_code, answer.json()["status"]) == (200, "active")


def test_with_two_people_it_waits_until_the_second_confirms(two: Cast) -> None:
    definition = draft(two)
    change = change_of(propose(two, definition, reason="First one"))
    assert stored(definition).state == "draft"
    assert (change.details["reason"], change.details["terms"]["policy_slug"]) == ("First one", "")
    done = confirm(two, change.id, by=two.second_operator)
    assert done.status_code == 200, done.json()
    assert stored(definition).state == "active"
    assert set(done.json()["result"]) == {"definition", "contract"}


def test_the_proposal_says_what_changes_and_what_it_publishes_besides(two: Cast) -> None:
    change = change_of(propose(two, draft(two)))
    assert (change.before, change.loosens) == ({"definition": None}, True)
    assert change.after["contract"]["creates_policy"] == "workflows: every step passes"
    assert len(change.after["contract"]["areas_to_approve"]) == 10
    with every_tenant():
        assert not Policy.objects.filter(slug="workflows").exists()


def test_the_next_version_is_compared_in_words_with_the_active_one(two: Cast) -> None:
    published(two)
    change = change_of(propose(two, draft(two, document=document() | {"name": "Other"})))
    (sentence,) = change.after["changes"]
    assert sentence.startswith("name changed from ")
    assert sentence.endswith(" to Other.")
    assert not change.loosens


def test_a_changed_step_may_loosen(two: Cast) -> None:
    published(two)
    changed = document()
    step = next(name for name, one in changed["steps"].items() if "timeout_seconds" in one)
    changed["steps"][step]["timeout_seconds"] += 1
    assert change_of(propose(two, draft(two, document=changed))).loosens


def test_nobody_who_wrote_to_it_can_confirm_it(two: Cast) -> None:
    definition = draft(two)
    third = two.person("aziz", "operator")
    theirs = key_of(two, two.second_operator, *SCOPES)
    assert theirs.patch(f"{URL}/{definition.id}", renamed("Other"), format="json").status_code == 200
    change = change_of(propose(two, definition))
    assert confirm(two, change.id, by=two.second_operator).status_code == 403
    assert confirm(two, change.id, by=two.operator).status_code == 403
    assert violation_kinds() == ["second_person_missing"] * 2
    assert confirm(two, change.id, by=third).status_code == 200


def test_a_clone_of_a_draft_keeps_its_authors(two: Cast) -> None:
    definition = draft(two)
    amir = two.session(two.second_operator)
    clone = amir.post(f"{URL}/{definition.id}/clone", {}, format="json").json()
    change = change_of(amir.post(f"{URL}/{clone['id']}/publish", {}, format="json"))
    assert confirm(two, change.id, by=two.operator).status_code == 403


def test_a_draft_that_changed_since_is_not_what_was_proposed(two: Cast) -> None:
    definition = draft(two)
    change = change_of(propose(two, definition))
    assert two.session(two.operator).patch(f"{URL}/{definition.id}", renamed("Other"), format="json").status_code == 200
    answer = confirm(two, change.id, by=two.second_operator)
    assert (answer.status_code, answer.json()["type"].split("/")[-1]) == (409, "proposal-outdated")
    assert stored(definition).state == "draft"


def test_another_definition_that_was_published_since_makes_it_outdated(two: Cast) -> None:
    definition = draft(two)
    change = change_of(propose(two, definition))
    published(two)
    assert confirm(two, change.id, by=two.second_operator).status_code == 409


def test_a_key_needs_the_scope_to_publish_at_the_general_door_too(two: Cast) -> None:
    definition = draft(two)
    body = {"kind": "definition.publish", "subject": str(definition.id)}
    weak = key_of(two, two.operator, "governance:write")
    assert weak.post(CHANGES, body, format="json").status_code == 403
    assert key_of(two, two.operator, *SCOPES).post(CHANGES, body, format="json").status_code == 201


def test_a_template_an_unknown_policy_and_a_bad_draft_are_refused_when_proposed(two: Cast) -> None:
    with every_tenant():
        template = WorkflowDefinition.objects.filter(is_template=True).first()
    assert template is not None
    assert propose(two, template).status_code == 409
    definition = draft(two)
    assert propose(two, definition, policy_slug="nowhere").status_code == 400
    with every_tenant():
        assert not AuthorityChange.objects.filter(kind="definition.publish").exists()


def test_the_console_proposes_and_says_so(two: Cast) -> None:
    definition = draft(two)
    address = f"/admin/workflows/workflowdefinition/{definition.id}/act/publish/"
    answer = two.console(two.operator).post(address, {"reason": ""}, follow=True)
    assert "A second person has to confirm it." in answer.content.decode()
    assert stored(definition).state == "draft"
