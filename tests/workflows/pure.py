"""Values for the pure parts of workflows, generated from the kinds' own schemas: a new kind is in these tests by
itself.

It still needs lines in four other files: kinds/test_kinds.py (its outcomes and effect), events/test_catalogue.py (its
event types), engine/support.py (params and a completion) and test_simulator_answers.py (a request, if the simulator
answers it)."""

import json
from functools import cache
from typing import Any

from hypothesis import strategies as st

from workflows.definitions.rules.findings import DefinitionFinding
from workflows.definitions.rules.starters.starters import definition_starter
from workflows.definitions.rules.validate import validate
from workflows.events.rules import event_type
from workflows.kinds.base import EventType, StepKind
from workflows.kinds.registry import kinds

HALT_CODES = frozenset({"consent_missing", "insufficient_images", "ai_review_failed", "image_quality"})
TIERS = frozenset({"customer_clinician", "sa_qa"})
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)
UUIDS = st.uuids(version=4).map(str)
SOME_UUIDS = st.lists(UUIDS, max_size=3)


def findings(document: Any, **changes: Any) -> list[DefinitionFinding]:
    given = {"kinds": kinds(), "halt_codes": HALT_CODES, "tiers": TIERS} | changes
    return validate(document, **given)


def rules(document: Any, **changes: Any) -> set[str]:
    return {finding.rule for finding in findings(document, **changes)}


def changed(name: str = "ai_escalation_plus_sa_sample", **steps: Any) -> dict[str, Any]:
    """A starter with fields of its steps changed; None takes a field away."""
    document = definition_starter(name)
    for step_id, fields in steps.items():
        step = document["steps"].setdefault(step_id, {})
        step.update(fields)
        document["steps"][step_id] = {key: value for key, value in step.items() if value is not None}
    return document


def event(name: str, version: str = "v1") -> EventType:
    found = event_type(name, version)
    assert found is not None, f"there is no event type {name} {version}"
    return found


def values_of(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """What a schema of the kinds accepts."""
    return _values_of(json.dumps(schema))


@cache
def _values_of(text: str) -> st.SearchStrategy[Any]:
    # Made once: making a strategy takes longer than drawing from it.
    schema = json.loads(text)
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    return st.one_of([_TYPES[name](schema) for name in types])


def _texts(schema: dict[str, Any]) -> st.SearchStrategy[str]:
    if schema.get("format") == "uuid":
        return UUIDS
    if "pattern" in schema:
        found = st.from_regex(schema["pattern"].replace("$", r"\Z"), fullmatch=True)
        longest = schema.get("maxLength", 10_000)
        taken = schema.get("not", {}).get("enum", ())
        return found.filter(lambda text: len(text) <= longest and text not in taken)
    printable = st.characters(min_codepoint=32, max_codepoint=126)
    return st.text(printable, min_size=schema.get("minLength", 0), max_size=min(schema["maxLength"], 40))


def _arrays(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    largest = min(schema["maxItems"], schema.get("minItems", 0) + 3)
    unique = repr if schema.get("uniqueItems") else None
    return st.lists(values_of(schema["items"]), min_size=schema.get("minItems", 0), max_size=largest, unique_by=unique)


def _objects(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    if "properties" not in schema:
        keys = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True)
        inside = schema.get("additionalProperties", {"type": "integer"})  # without it: anything
        return st.dictionaries(keys, values_of(inside), max_size=3)
    fields = {name: values_of(field) for name, field in schema["properties"].items()}
    required = {name: field for name, field in fields.items() if name in schema["required"]}
    optional = {name: field for name, field in fields.items() if name not in schema["required"]}
    return st.fixed_dictionaries(required, optional=optional)


def _numbers(schema: dict[str, Any]) -> st.SearchStrategy[float]:
    low, high = schema.get("minimum", -1000), schema.get("maximum", 1000)
    return st.floats(low, high, allow_nan=False, width=32)


_TYPES: dict[str, Any] = {
    "object": _objects,
    "array": _arrays,
    "string": _texts,
    "integer": lambda schema: st.integers(schema.get("minimum", -1000), schema.get("maximum", 1000)),
    "number": _numbers,
    "boolean": lambda _: st.booleans(),
    "null": lambda _: st.none(),
}


@cache
def _kind_names(*names: str) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(names), max_size=3)


@st.composite
def contexts(draw: Any) -> dict[str, Any]:
    """What an engine may hand to a kind: the root and outputs of steps of any kind."""
    context: dict[str, Any] = {name: draw(UUIDS) for name in ("case_id", "org_id", "product_id", "definition_id")}
    context |= {"instance_id": draw(UUIDS), "patient_id": "patient-1", "image_ids": draw(SOME_UUIDS)}
    for kind in draw(_kind_names(*sorted(kinds()))):
        context[f"step_{kind}"] = draw(values_of(kinds()[kind].output_schema))
    return context


def tenth(**changes: Any) -> StepKind:
    """A kind as another app would bring it."""
    return StepKind(**({"name": "wait_for_signal", "title": "Signal", "description": "Waits."} | _TENTH | changes))


_TENTH: dict[str, Any] = {
    "params_schema": {"type": "object", "additionalProperties": False, "required": [], "properties": {}},
    "outcomes": ("on_complete",),
    "output_schema": {"type": "object", "additionalProperties": False, "required": [], "properties": {}},
    "effect": "once",
    "instant": lambda params, context, decide: None,
}
