"""For any JSON at all: validation answers and never raises, what it accepts can be hashed, and hashes
ignore order."""

import hashlib
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from governance.contracts.rules.documents import (
    AREAS,
    DocumentProblem,
    default_documents,
    document_sha256,
    validate_document,
    validate_documents,
)

pytestmark = pytest.mark.unit

scalars = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from(["once", "never"])
)
json_values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)
names = st.sampled_from([entry.name for entry in AREAS])


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every value inside a document."""
    found = [path]
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in members:
        found.extend(places(member, (*path, key)))
    return found


@st.composite
def damaged_documents(draw: st.DrawFn) -> tuple[str, Any]:
    """A default document in which one place was replaced by arbitrary JSON."""
    name = draw(names)
    document = default_documents()[name]
    path = draw(st.sampled_from(places(document)))
    if not path:
        return name, draw(json_values)
    place: Any = document
    for part in path[:-1]:
        place = place[part]
    place[path[-1]] = draw(json_values)
    return name, document


def reordered(value: Any) -> Any:
    """The same JSON with every object's keys in reverse."""
    if isinstance(value, dict):
        return {key: reordered(value[key]) for key in reversed(value)}
    return [reordered(item) for item in value] if isinstance(value, list) else value


@given(name=names, value=json_values)
def test_any_json_is_either_accepted_or_explained(name: str, value: Any) -> None:
    assert all(isinstance(problem, DocumentProblem) for problem in validate_document(name, value))


@given(damaged=damaged_documents(), effect=st.sampled_from(["none", "idempotent", "once"]) | st.text(max_size=5))
def test_a_damaged_document_never_raises_and_what_is_accepted_can_be_hashed(
    damaged: tuple[str, Any], effect: str
) -> None:
    name, document = damaged
    before = deepcopy(document)
    problems = validate_document(name, document)
    together = validate_documents(default_documents() | {name: document}, effect=effect)
    assert repr(document) == repr(before)
    assert {f"/{name}{problem.pointer}" for problem in problems} <= {problem.pointer for problem in together}
    if not problems:
        assert len(document_sha256(document)) == 64


@given(documents=st.dictionaries(names | st.text(max_size=5), json_values, max_size=5))
def test_any_set_of_documents_never_raises(documents: dict[str, Any]) -> None:
    assert validate_documents(documents, effect="once")


@given(damaged=damaged_documents())
def test_the_hash_does_not_depend_on_the_order_of_keys(damaged: tuple[str, Any]) -> None:
    name, document = damaged
    if any(problem.rule == "not_canonical_json" for problem in validate_document(name, document)):
        return
    assert document_sha256(reordered(document)) == document_sha256(document)


def test_the_hash_is_sha256_of_the_canonical_text() -> None:
    assert document_sha256({"b": [1, "é"], "a": None}) == hashlib.sha256('{"a":null,"b":[1,"é"]}'.encode()).hexdigest()


def test_the_ten_defaults_have_ten_different_hashes() -> None:
    assert len({document_sha256(document) for document in default_documents().values()}) == 10
