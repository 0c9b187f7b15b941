"""The contract's metadata_boundary document: what is accepted, what is refused and why."""

import copy

import pytest

from governance.boundary.rules import (
    DEFAULT_DOCUMENT,
    BoundaryDocumentError,
    BoundaryPolicy,
    inspect_metadata,
    validate_boundary_document,
)

pytestmark = pytest.mark.unit


def document(properties=None, **changes):
    schema = {"type": "object", "properties": properties or {}, "additionalProperties": False}
    return copy.deepcopy(DEFAULT_DOCUMENT) | {"schema": schema} | changes


def test_the_default_document_is_valid_and_accepts_only_an_empty_object():
    assert validate_boundary_document(DEFAULT_DOCUMENT) == []
    policy = BoundaryPolicy.from_document(DEFAULT_DOCUMENT)
    assert inspect_metadata({}, policy=policy) == ()
    assert [f.rule for f in inspect_metadata({"k": 1}, policy=policy)] == ["not_in_schema"]


def test_an_empty_document_is_as_closed_as_the_default():
    assert BoundaryPolicy.from_document({}) == BoundaryPolicy.from_document(DEFAULT_DOCUMENT)


@pytest.mark.parametrize(
    "value",
    [
        {"type": "string", "maxLength": 40},
        {"type": "string", "format": "uuid"},
        {"type": "string", "pattern": "^[a-z]{3}$"},
        {"type": ["string", "null"], "maxLength": 4},
        {"enum": ["a", "b"]},
        {"const": "a"},
        {"type": "integer"},
        {"type": "array", "items": {"type": "boolean"}},
        {"type": "array", "prefixItems": [{"type": "integer"}], "items": False},
        {"type": "object", "properties": {"k": {"type": "number"}}, "additionalProperties": False},
        {"anyOf": [{"type": "integer"}, {"enum": ["none"]}]},
        False,
    ],
)
def test_bounded_properties_are_accepted(value):
    assert validate_boundary_document(document({"stage": value})) == []


@pytest.mark.parametrize(
    "value",
    [
        {},
        True,
        {"type": "string"},
        {"type": "string", "minLength": 3},
        {"type": "string", "maxLength": 5000},
        {"type": "string", "format": "anything"},
        {"type": "string", "pattern": "a"},
        {"type": "array"},
        {"type": "array", "items": {"type": "string"}},
        {"type": "object"},
        {"type": "object", "additionalProperties": {"type": "integer"}},
        {"type": "object", "additionalProperties": False, "patternProperties": {"^x": {"type": "integer"}}},
        {"anyOf": [{"type": "integer"}, {}]},
        {"allOf": [{}]},
        {"not": {"type": "integer"}},
        {"$ref": "https://example.com/schema"},
        {"$ref": "#/properties/other"},
        {"$ref": "#/$defs/missing"},
        {"$id": "https://example.com/x", "type": "integer"},
        {"type": "text"},
        {"type": "string", "pattern": "^(?=a)$"},
        {"type": "string", "maxLength": "ten"},
    ],
)
def test_unbounded_or_unusable_properties_are_refused(value):
    problems = validate_boundary_document(document({"stage": value}))
    assert problems
    with pytest.raises(BoundaryDocumentError):
        BoundaryPolicy.from_document(document({"stage": value}))


def test_definitions_are_followed_also_when_they_are_recursive():
    good = document({"tree": {"$ref": "#/$defs/node"}})
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}, "additionalProperties": False}
    good["schema"]["$defs"] = {"node": node}
    assert validate_boundary_document(good) == []
    del node["additionalProperties"]
    assert len(validate_boundary_document(good)) == 1


def test_a_schema_that_lists_a_forbidden_key_is_refused_because_it_could_never_be_used():
    problems = validate_boundary_document(document({"patient_name": {"type": "string", "maxLength": 9}}))
    assert len(problems) == 1
    assert "forbidden key" in problems[0]


@pytest.mark.parametrize(
    "changes",
    [
        {"max_bytes": 1},
        {"max_bytes": 70_000},
        {"max_bytes": True},
        {"max_bytes": "4096"},
        {"max_depth": 0},
        {"max_depth": 8},
        {"forbidden_keys": "ward"},
        {"forbidden_keys": [""]},
        {"forbidden_keys": [3]},
        {"detectors": []},
        {"detectors": {"enabled": []}},
        {"detectors": {"disabled": "email"}},
        {"detectors": {"disabled": ["nonsense"]}},
        {"detectors": {"disabled": ["too_large"]}},
        {"detectors": {"disabled": ["card_number"]}},
        {"detectors": {"disabled": ["private_key"]}},
        {"detectors": {"disabled": ["bearer_token"]}},
        {"schema": None},
        {"schema": True},
        {"schema": {"type": "array", "items": False}},
        {"schema": {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"}},
        {"surprise": 1},
    ],
)
def test_each_mistake_is_one_problem(changes):
    assert len(validate_boundary_document(document() | changes)) == 1


@pytest.mark.parametrize("value", [None, [], "x", 3])
def test_what_is_no_object_is_a_problem_and_never_an_exception(value):
    assert validate_boundary_document(value) == ["the document must be an object"]


def test_a_document_that_is_not_json_is_refused():
    with pytest.raises(BoundaryDocumentError):
        BoundaryPolicy.from_document({"max_bytes": {1}})


def test_limits_keys_and_detectors_of_the_document_take_effect():
    policy = BoundaryPolicy.from_document(
        document(
            {"link": {"type": "string", "maxLength": 60}, "ward": {"type": "integer"}},
            max_bytes=60,
            max_depth=1,
            forbidden_keys=["ward"],
            detectors={"disabled": ["email"]},
        )
    )
    assert inspect_metadata({"link": "jane@example.com"}, policy=policy) == ()
    assert [f.rule for f in inspect_metadata({"ward": 3}, policy=policy)] == ["forbidden_key"]
    assert [f.rule for f in inspect_metadata({"link": "x" * 60}, policy=policy)] == ["too_large"]
    assert [f.rule for f in inspect_metadata({"link": []}, policy=policy)] == ["too_deep"]


def test_built_in_keys_can_be_switched_off_but_the_contracts_own_stay():
    policy = BoundaryPolicy.from_document(
        document({"comment": {"type": "integer"}}, forbidden_keys=["ward"], detectors={"disabled": ["forbidden_key"]})
    )
    assert inspect_metadata({"comment": 1}, policy=policy) == ()
    assert "forbidden_key" in {f.rule for f in inspect_metadata({"ward": 1}, policy=policy)}


def test_an_unknown_detector_or_an_unusable_schema_cannot_be_constructed_directly():
    for arguments in ({"detectors": ("nonsense",)}, {"max_depth": 99}):
        with pytest.raises(BoundaryDocumentError):
            BoundaryPolicy(schema=None, **arguments)
    with pytest.raises(BoundaryDocumentError):
        BoundaryPolicy(schema={"type": "text"})
