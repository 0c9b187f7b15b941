"""Expressions of format 2 can be evaluated: they parse, what they read is there on every path, and its kinds fit."""

from collections.abc import Iterator

from governance.conditions import ConditionError, Expression, compile_expression
from governance.conditions.values import ARRAY, STRING
from workflows.definitions.rules.bounded import MAX_SCHEMA_DEPTH
from workflows.definitions.rules.findings import DefinitionFinding
from workflows.definitions.rules.inference import (
    Type,
    evaluation_problems,
    expected,
    infer,
    is_timestamp,
    nesting,
    type_schema,
)
from workflows.definitions.rules.paths import PathProblem
from workflows.definitions.rules.reads import Reads, Site, TypedReading
from workflows.kinds.shapes import MAX_ITEMS
from workflows.kinds.template import template_parts


def expression_parses(reading: TypedReading) -> Iterator[DefinitionFinding]:
    for site in reading.reads.sites:
        try:
            compile_expression(site.source)
        except ConditionError as error:
            message = f"The expression cannot be read: {error}."
            yield DefinitionFinding("expression_parses", site.pointer(reading), message)


def templates_closed(reading: TypedReading) -> Iterator[DefinitionFinding]:
    for step_id, _, kind in reading.of_kind():
        for param in (*kind.templates, "send", "facts", "input"):
            for where, text in _texts(reading.params(step_id).get(param)):
                try:
                    template_parts(text)
                except ConditionError as error:
                    pointer = reading.param_pointer(step_id, param, *where)
                    yield DefinitionFinding("expression_parses", pointer, f"The template cannot be read: {error}.")


def expression_paths_known(reading: TypedReading) -> Iterator[DefinitionFinding]:
    """Arguments of coalesce may be missing when the run gets there, but must be able to exist: otherwise it is a typing
    error."""
    reads = reading.reads
    for site, compiled in reads.compiled() if reading.blocks.is_sound else ():
        for path in sorted(compiled.paths):
            problem = reads.path_problem(site, path, required=path in compiled.required_paths)
            if problem is not None:
                yield _finding("expression_paths_known", reading, site, problem)


def expression_types_fit(reading: TypedReading) -> Iterator[DefinitionFinding]:
    reads = reading.reads
    for site, compiled in reads.compiled() if reading.blocks.is_sound else ():
        # A path that leads nowhere has been reported, and has no kind.
        if any(reads.path_problem(site, path, required=False) for path in compiled.paths):
            continue
        for problem in _type_problems(reads, site, compiled.expression):
            yield _finding("expression_types_fit", reading, site, problem)


def _type_problems(reads: Reads, site: Site, expression: Expression) -> Iterator[PathProblem]:
    def type_of(path: tuple[str, ...]) -> Type:
        return reads.type_of(site, path)

    yield from evaluation_problems(expression, type_of)
    if site.wanted:
        yield from expected(expression, set(site.wanted), site.what, type_of)
    found = infer(expression, type_of)
    if site.place == ("until",) and found.kinds == {STRING} and not is_timestamp(expression, found):
        yield PathProblem("What until says must be a timestamp. Give its field the format date-time, or write one.")
    if site.place[:1] == ("values",) and nesting(type_schema(found)) >= MAX_SCHEMA_DEPTH:
        yield PathProblem(
            f"Objects and lists are nested at most {MAX_SCHEMA_DEPTH - 1} deep in a value. Assign a part."
        )
    most = (found.schema or {}).get("maxItems")
    if site.place == ("over",) and found.kinds == {ARRAY} and (not isinstance(most, int) or most > MAX_ITEMS):
        yield PathProblem(f"The list has at most {MAX_ITEMS} items. Say so in its schema: maxItems.", str(MAX_ITEMS))


def _finding(rule: str, reading: TypedReading, site: Site, problem: PathProblem) -> DefinitionFinding:
    return DefinitionFinding(rule, site.pointer(reading), problem.message, problem.suggestion)


def _texts(value: object, where: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], str]]:
    if isinstance(value, str):
        yield where, value
    elif isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _texts(item, (*where, key))
