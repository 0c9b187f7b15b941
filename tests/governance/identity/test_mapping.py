"""The mapping from claims and groups to roles, and SCIM's documents: pure."""

from typing import Any
from uuid import uuid4

import pytest

from governance.identity.rules.mapping import mapping_problems, roles_allowed, roles_of_values, values_of
from governance.identity.rules.scim import (
    ScimInvalid,
    filter_parse,
    group_patch,
    user_document,
    user_patch,
)

pytestmark = pytest.mark.unit
USERS = {"username": "user_name"}


@pytest.mark.parametrize(
    ("claims", "name", "found"),
    [
        ({"groups": ["a", "b"]}, "groups", {"a", "b"}),
        ({"groups": "a"}, "groups", {"a"}),
        ({"realm": {"roles": ["a"]}}, "realm.roles", {"a"}),
        ({"https://x.example/roles": ["a"]}, "https://x.example/roles", {"a"}),
        ({"groups": [1, None, {"a": 1}]}, "groups", set()),
        ({"groups": {"a": 1}}, "groups", set()),
        ({}, "groups", set()),
        ({"realm": "text"}, "realm.roles", set()),
    ],
)
def test_values_are_texts_or_nothing(claims: dict[str, Any], name: str, found: set[str]) -> None:
    assert values_of(claims, name) == found


def test_only_mapped_values_give_roles() -> None:
    mapping = {"a": ["auditor"], "b": ["operator"]}
    assert roles_of_values(["a", "c"], mapping) == {"auditor"}
    assert roles_of_values([], mapping) == frozenset()


@pytest.mark.parametrize(
    "mapping",
    [
        [],
        {"": ["auditor"]},
        {"a": []},
        {"a": "auditor"},
        {"a": ["root"]},
        {"a": ["reviewer:"]},
        {"a": [1]},
        {"a": ["operator", "auditor"]},
    ],
)
def test_a_mapping_to_something_else_than_roles_is_refused(mapping: Any) -> None:
    assert mapping_problems(mapping)


def test_roles_that_are_forbidden_together_are_left_out_both() -> None:
    assert roles_allowed(frozenset({"auditor", "operator"}), by_hand=frozenset()) == frozenset()
    assert roles_allowed(frozenset({"auditor", "reviewer:a"}), by_hand=frozenset({"operator"})) == frozenset()
    assert roles_allowed(frozenset({"reviewer:a"}), by_hand=frozenset({"reviewer:b"})) == {"reviewer:a"}


def test_a_mapping_may_name_tiers_of_the_organization() -> None:
    assert mapping_problems({"a": ["reviewer:night_shift"], "b": ["owner:privacy"]}) == []


@pytest.mark.parametrize("text", ['userName sw "a"', "userName eq a", 'name eq "a"', 'userName eq "a" or 1 eq "1"', ""])
def test_a_filter_that_is_not_known_is_refused_and_not_ignored(text: str) -> None:
    with pytest.raises(ScimInvalid):
        filter_parse(text, allowed=USERS)


def test_a_filter_is_read_with_its_escapes() -> None:
    assert filter_parse(r'userName eq "a\"b"', allowed=USERS) == {"user_name": 'a"b'}
    assert filter_parse('USERNAME EQ "a"', allowed=USERS) == {"user_name": "a"}


@pytest.mark.parametrize(
    "operations",
    [
        [{"op": "replace", "path": "active", "value": False}],
        [{"op": "Replace", "value": {"active": False}}],
        [{"op": "replace", "path": "active", "value": "False"}],
        [{"op": "add", "path": "active", "value": True}, {"op": "replace", "path": "active", "value": False}],
        [{"op": "replace", "path": "name.givenName", "value": "x"}, {"op": "replace", "value": {"active": False}}],
    ],
)
def test_the_ways_in_which_providers_deactivate(operations: list[dict[str, Any]]) -> None:
    assert user_patch({"Operations": operations}).active is False


@pytest.mark.parametrize(
    "body",
    [
        [],
        {},
        {"Operations": []},
        {"Operations": [{"op": "move", "path": "active"}]},
        {"Operations": [{"op": "remove"}]},
        {"Operations": [{"op": "remove", "path": "userName"}]},
        {"Operations": [{"op": "replace", "path": "active", "value": "perhaps"}]},
        {"Operations": [{"op": "replace", "path": "userName", "value": "x" * 81}]},
    ],
)
def test_a_patch_that_cannot_be_understood_is_refused(body: Any) -> None:
    with pytest.raises(ScimInvalid):
        user_patch(body)


def test_a_document_without_a_name_is_refused_and_more_than_is_kept_is_ignored() -> None:
    with pytest.raises(ScimInvalid):
        user_document({"externalId": "1"})
    kept = user_document({"userName": "rita", "name": {"familyName": "x"}, "phoneNumbers": [{"value": "1"}]})
    assert (kept.user_name, kept.external_id, kept.active, kept.email) == ("rita", None, None, None)


def test_members_are_added_removed_and_replaced() -> None:
    one, two = uuid4(), uuid4()
    add = {"op": "add", "path": "members", "value": [{"value": str(one)}]}
    remove = {"op": "remove", "path": f'members[value eq "{one}"]'}
    assert group_patch({"Operations": [add]}).add == {one}
    gone = group_patch({"Operations": [add, remove]})
    assert (gone.add, gone.remove) == (set(), {one})
    replaced = group_patch({"Operations": [{"op": "replace", "path": "members", "value": [{"value": str(two)}]}]})
    assert replaced.members == {two}
    assert group_patch({"Operations": [{"op": "remove", "path": "members"}]}).members == set()
    with pytest.raises(ScimInvalid):
        group_patch({"Operations": [{"op": "add", "path": "owners", "value": []}]})
