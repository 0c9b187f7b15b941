"""JSON for people's eyes: read carefully, printed, compared."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from governance.console.admin.forms import JsonTextError, document_differences, json_parse, marked_lines, pretty
from governance.policies.admin.policies import rules_diff

pytestmark = pytest.mark.unit

leaves = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=10)
values = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
)


@given(values)
def test_what_is_printed_is_read_back(value: object) -> None:
    assert json_parse(pretty(value)) == value


@given(st.text())
def test_any_text_is_read_or_refused_with_our_own_error(text: str) -> None:
    try:
        json_parse(text)
    except JsonTextError:
        return


@given(values)
def test_equal_values_differ_nowhere(value: object) -> None:
    assert document_differences(value, value) == []
    assert not any(line.changed for line in marked_lines(value, value))


@given(values, values)
def test_different_values_differ_somewhere(before: object, after: object) -> None:
    assert bool(document_differences(before, after)) == (pretty(before) != pretty(after))


def test_true_is_not_one() -> None:
    assert [d.pointer for d in document_differences({"a": 1}, {"a": True})] == ["/a"]


def test_pointers_are_escaped_and_absence_is_said() -> None:
    (found,) = document_differences({}, {"a/b~c": 1})
    assert (found.pointer, found.before, found.after) == ("/a~1b~0c", "absent", "1")


@pytest.mark.parametrize("text", ['{"a": 1, "a": 2}', '{"b": {"a": 1, "a": 1}}'])
def test_a_name_that_is_there_twice_is_refused(text: str) -> None:
    with pytest.raises(JsonTextError, match="twice"):
        json_parse(text)


def rule(name: str, when: str = "true") -> dict[str, str]:
    return {"id": name, "when": when, "verdict": "allow"}


def test_rules_are_added_removed_changed_and_moved() -> None:
    before = [rule("a"), rule("b"), rule("c"), rule("gone")]
    after = [rule("b"), rule("a"), rule("c", "false"), rule("new")]
    assert {(change.rule_id, change.kind) for change in rules_diff(before, after)} == {
        ("gone", "removed"),
        ("new", "added"),
        ("c", "changed"),
        ("a", "moved"),
        ("b", "moved"),
    }


def test_a_new_rule_in_front_moves_no_other() -> None:
    assert [change.kind for change in rules_diff([rule("a"), rule("b")], [rule("x"), rule("a"), rule("b")])] == [
        "added"
    ]


def test_a_faulty_draft_does_not_break_the_comparison() -> None:
    assert rules_diff([rule("a")], [1, {}, rule("a")]) == []  # type: ignore[list-item]
