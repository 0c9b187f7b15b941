"""Shape, sizes, numbers and the names of steps."""

import re
from collections.abc import Iterator

from governance.conditions.vocabulary import RESERVED
from governance.contracts.rules.documents.json_safety import integers_written_as_floats
from workflows.definitions.rules.document import TERMINAL
from workflows.definitions.rules.findings import DefinitionFinding, did_you_mean, is_plain, nearest
from workflows.definitions.rules.reading import Reading
from workflows.kinds.base import ROOT, ShapeProblem, checker
from workflows.kinds.shapes import CODE_PATTERN

_STEP_ID = re.compile(CODE_PATTERN.strip("^$"))


def document_shape(reading: Reading) -> Iterator[DefinitionFinding]:
    """Fields, types and limits; unknown fields with the one that was probably meant."""
    for problem in checker(reading.schema).problems(reading.document, known=reading.known_names):
        if problem.rule == "field_name":
            continue  # step_ids_valid says which
        rule = "limits" if problem.rule == "limit" else "document_shape"
        suggestion = _field_meant(reading, problem)
        remove = " Remove it." if problem.rule == "unknown_field" and not suggestion else did_you_mean(suggestion)
        message = f"{_subject(problem)} {problem.message}.{remove}"
        yield DefinitionFinding(rule, problem.pointer, message, suggestion)


def integers_written_plainly(reading: Reading) -> Iterator[DefinitionFinding]:
    """JSON Schema accepts 3.0 as an integer; the engine needs a real one."""
    top = integers_written_as_floats(reading.document, schema=reading.schema)
    for problem in top:
        yield _integer(problem.pointer)
    for step_id, step in reading.steps.items():
        for problem in integers_written_as_floats(step, schema=reading.step_schema):
            yield _integer(reading.pointer("steps", step_id) + problem.pointer)
    for step_id, step, kind in reading.of_kind():
        for problem in integers_written_as_floats(step.get("params"), schema=kind.params_schema):
            yield _integer(reading.pointer("steps", step_id, "params") + problem.pointer)


def step_ids_valid(reading: Reading) -> Iterator[DefinitionFinding]:
    """A step's id is a word in conditions and a key in the context, so it must be free there."""
    for step_id in reading.raw_steps:
        pointer = reading.pointer("steps", step_id)
        if not _STEP_ID.fullmatch(step_id):
            suggestion = _as_id(step_id) if is_plain(step_id) else ""
            message = "A step's id has up to 64 lower-case letters, digits and underscores, a letter first. Rename it."
            yield DefinitionFinding("step_ids_valid", pointer, message + did_you_mean(suggestion), suggestion)
        elif step_id in ROOT or step_id in RESERVED:
            message = "This word has a meaning of its own in a context or a condition. Rename the step."
            yield DefinitionFinding("step_ids_valid", pointer, message, f"{step_id}_step")


def expression_once(reading: Reading) -> Iterator[DefinitionFinding]:
    for step_id, step in reading.steps.items():
        params = step.get("params")
        if "expr" in step and isinstance(params, dict) and "expr" in params:
            message = "The expression stands here and in params. Keep one of them."
            yield DefinitionFinding("expression_once", reading.pointer("steps", step_id, "expr"), message)


def _integer(pointer: str) -> DefinitionFinding:
    return DefinitionFinding("integer_form", pointer, "Write this number as an integer, without a decimal point.")


def _subject(problem: ShapeProblem) -> str:
    last = problem.pointer.rpartition("/")[2]
    return f"'{last}'" if is_plain(last) else "This"


def _field_meant(reading: Reading, problem: ShapeProblem) -> str:
    """Only steps and the document itself have fields of ours; pointers to fields of a step have three parts."""
    if problem.rule != "unknown_field":
        return ""
    *_, last = parts = problem.pointer.split("/")[1:]
    return nearest(last, (reading.schema if len(parts) == 1 else reading.step_schema)["properties"])


def _as_id(name: str) -> str:
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().replace(".", "_").strip("_")[:64]
    return words if _STEP_ID.fullmatch(words) and words != TERMINAL.lower() else ""
