"""A missing value is neither false nor null; only coalesce receives it."""

from collections import ChainMap
from types import MappingProxyType
from typing import Any

import pytest

from governance.conditions import ConditionTypeError, MissingPathError
from tests.governance.conditions.support import evaluate

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    "source",
    [
        "a.gone",
        "!a.gone",
        "a.gone == 1",
        "1 != a.gone",
        "a.gone in [1]",
        "1 in a.gone",
        "len(a.gone) == 0",
        "sample(a.gone)",
        "1 in [a.gone]",
        "a.gone && true",
        "a.gone || true",
        "coalesce(len(a.gone), 0) == 0",
        "coalesce(!a.gone, true)",
        "coalesce(a.other, a.gone) == 1",
    ],
)
def test_any_use_of_a_missing_path_is_an_error_that_names_it(source: str) -> None:
    with pytest.raises(MissingPathError) as caught:
        evaluate(source, {"a": {"x": 1}})
    assert caught.value.code == "condition_missing_path"
    assert caught.value.path == ("a", "gone")
    assert "'a.gone'" in caught.value.message
    assert caught.value.column == source.index("a.gone") + 1


@pytest.mark.parametrize(
    "context", [{}, {"a": {}}, {"a": None}, {"a": {"b": None}}, {"a": {"b": {}}}, {"a": {"b": {"c": None}}}]
)
def test_coalesce_receives_a_missing_or_null_value_at_any_step_of_the_path(context: dict[str, Any]) -> None:
    assert evaluate("coalesce(a.b.c, 7) == 7", context)


@pytest.mark.parametrize(
    ("value", "source"),
    [
        (False, "coalesce(a.b, true) == false"),
        (0, "coalesce(a.b, 1) == 0"),
        ("", "coalesce(a.b, 'default') == ''"),
        ([], "len(coalesce(a.b, [1])) == 0"),
    ],
)
def test_coalesce_keeps_a_value_that_is_merely_empty(value: Any, source: str) -> None:
    assert evaluate(source, {"a": {"b": value}})


def test_coalesce_nests() -> None:
    source = "coalesce(coalesce(a.x, b.x), 3) == 3"
    assert evaluate(source, {"a": {}, "b": {}})
    assert not evaluate(source, {"a": {}, "b": {"x": 4}})
    assert evaluate("coalesce(a.x, coalesce(b.x, 3)) == 3")


def test_the_default_is_not_evaluated_when_it_is_not_needed() -> None:
    assert evaluate("coalesce(a.x, gone.y) == 1", {"a": {"x": 1}})


@pytest.mark.parametrize("value", [1, "text", [1], True])
def test_a_path_through_something_without_fields_is_a_type_error_that_coalesce_does_not_hide(
    value: Any,
) -> None:
    for source in ("a.b.c == 1", "coalesce(a.b.c, 1) == 1"):
        with pytest.raises(ConditionTypeError, match=r"a\.b\.c"):
            evaluate(source, {"a": {"b": value}})


@pytest.mark.parametrize("source", ["a.x == 1", "a.x != 1", "a.x == a.x", "!a.x", "a.x", "len(a.x) == 0", "a.x in [1]"])
def test_null_is_refused_everywhere_but_in_coalesce(source: str) -> None:
    with pytest.raises(ConditionTypeError):
        evaluate(source, {"a": {"x": None}})


def test_two_nulls_leave_a_null_which_is_refused() -> None:
    with pytest.raises(ConditionTypeError):
        evaluate("coalesce(a.x, a.x) == 1", {"a": {"x": None}})


def test_any_mapping_serves_as_context() -> None:
    inner = MappingProxyType({"x": 1})
    assert evaluate("a.x == 1", MappingProxyType({"a": inner}))
    assert evaluate("a.x == 1", ChainMap({}, {"a": inner}))


def test_attributes_and_methods_of_values_cannot_be_reached() -> None:
    for source in ("a.__class__ == 1", "a.keys == 1", "a.x.real == 1", "a.x.__class__ == 1"):
        with pytest.raises((MissingPathError, ConditionTypeError)):
            evaluate(source, {"a": {"x": 1}})
