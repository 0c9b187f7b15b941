"""What an author's schemas say in format 2: of the input, of what is returned, of a form."""

import re
from collections.abc import Iterator
from typing import Any

from workflows.definitions.rules.bounded import schema_problems
from workflows.definitions.rules.checks import kinds
from workflows.definitions.rules.findings import DefinitionFinding
from workflows.definitions.rules.reads import TypedReading
from workflows.kinds.base import Json
from workflows.kinds.shapes import CODE_PATTERN

# Params of the kinds that are schemas.
SCHEMAS = ("returns", "form")
# What a human task's output has besides the fields of its form.
TASK_FIELDS = ("outcome", "reviewer")
_EXPIRED = "expired"
_CODE = re.compile(CODE_PATTERN.strip("^$"))


def input_bounded(reading: TypedReading) -> Iterator[DefinitionFinding]:
    if "input" in reading.document:
        for place, message, suggestion in schema_problems(reading.document["input"]):
            yield DefinitionFinding("schema_bounded", reading.pointer("input", *place), message, suggestion)


def params_bounded(reading: TypedReading) -> Iterator[DefinitionFinding]:
    for step_id, _, kind in reading.of_kind():
        for param in SCHEMAS:
            if param in kind.params_schema.get("properties", {}) and param in reading.params(step_id):
                for place, message, suggestion in schema_problems(reading.params(step_id)[param]):
                    pointer = reading.param_pointer(step_id, param, *place)
                    yield DefinitionFinding("schema_bounded", pointer, message, suggestion)


def tasks_fit(reading: TypedReading) -> Iterator[DefinitionFinding]:
    """A form has plain fields only, and neither they nor the outcomes have names that mean something else."""
    for step_id, _, kind in reading.of_kind():
        if kind.name != "human_task":
            continue
        params = reading.params(step_id)
        yield from _form(reading, step_id, _properties(params.get("form")))
        outcomes = params.get("outcomes")
        names = outcomes if isinstance(outcomes, list) else []
        for index, name in enumerate(names):
            pointer = reading.param_pointer(step_id, "outcomes", index)
            if name == _EXPIRED:
                message = "Every human task has the outcome on_expired already. Choose another name, or remove it."
                yield DefinitionFinding("tasks_fit", pointer, message)
            elif name in names[:index]:
                yield DefinitionFinding("tasks_fit", pointer, "This outcome is listed already. Remove it.")


def reviewers_exist(reading: TypedReading) -> Iterator[DefinitionFinding]:
    """`same_as` and `not` name a step whose person is known by then."""
    for step_id, _, kind in reading.of_kind():
        given = reading.params(step_id).get("rule") if kind.name == "assign_reviewer" else None
        rule = given if isinstance(given, dict) else {}
        for word in ("same_as", "not"):
            named = rule.get(word)
            if not isinstance(named, str):
                continue
            pointer = reading.param_pointer(step_id, "rule", word)
            earlier = reading.reads.visible.certain(step_id) if reading.blocks.is_sound else set(reading.steps)
            if named not in earlier:
                message = (
                    "Some path leads here without this step, or without its answer. Name one that every path passes."
                )
                yield DefinitionFinding("reviewers_exist", pointer, message)
            elif not _has_person(reading, named):
                message = "No person decides in that step. Name a step of kind human_task or assign_reviewer."
                yield DefinitionFinding("reviewers_exist", pointer, message)


def retries_allowed(reading: TypedReading) -> Iterator[DefinitionFinding]:
    """A call's effect is that of the operation. It is looked up when the definition is published, and judged there."""
    called = {step_id for step_id, _, kind in reading.of_kind() if kind.name == "call_service"}
    unpinned = {
        reading.pointer("steps", name, "max_retries") for name in called if "pinned" not in reading.params(name)
    }
    yield from (one for one in kinds.effect_forbids_retries(reading) if one.pointer not in unpinned)


def _form(reading: TypedReading, step_id: str, fields: Json) -> Iterator[DefinitionFinding]:
    for name, field in fields.items():
        pointer = reading.param_pointer(step_id, "form", "properties", name)
        if name in TASK_FIELDS:
            message = "The output of a human task has a field of this name already. Rename the form's field."
            yield DefinitionFinding("tasks_fit", pointer, message, f"{name}_given")
        elif not _CODE.fullmatch(name):
            message = "A field of a form has up to 64 lower-case letters, digits and underscores, a letter first."
            yield DefinitionFinding("tasks_fit", pointer, message)
        elif isinstance(field, dict) and not _is_plain(field):
            message = "A field of a form is a code, a number, a date, a reference or a yes or no, not an object."
            yield DefinitionFinding("tasks_fit", pointer, message)


def _is_plain(field: Json) -> bool:
    """One value, or a list of coded ones."""
    given = field.get("type")
    names = set(given) if isinstance(given, list) else {given}
    items = field.get("items")
    return "object" not in names and ("array" not in names or (isinstance(items, dict) and "enum" in items))


def _has_person(reading: TypedReading, step_id: str) -> bool:
    kind = reading.kind(step_id)
    return kind is None or bool(kind.human_tier) or kind.name == "assign_reviewer"


def _properties(schema: Any) -> Json:
    found = schema.get("properties") if isinstance(schema, dict) else None
    return found if isinstance(found, dict) else {}
