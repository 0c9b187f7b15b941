"""Conditions can be evaluated: they parse, and everything that they read is in the context on every path."""

from collections.abc import Iterator

from governance.conditions import Condition, ConditionError, compile_condition
from workflows.definitions.rules.findings import DefinitionFinding
from workflows.definitions.rules.paths import path_problem, schema_of
from workflows.definitions.rules.reading import Reading
from workflows.definitions.rules.types import type_problems
from workflows.kinds.template import placeholders


def condition_parses(reading: Reading) -> Iterator[DefinitionFinding]:
    for step_id, param, source in _sources(reading):
        try:
            compile_condition(source)
        except ConditionError as error:
            message = f"The condition cannot be read: {error}."
            yield DefinitionFinding("condition_parses", reading.param_pointer(step_id, param), message)


def condition_paths_known(reading: Reading) -> Iterator[DefinitionFinding]:
    """Arguments of coalesce may be missing at run time, but must be able to exist: otherwise it is a typing error."""
    for step_id, param, source in _sources(reading):
        condition = _compiled(source)
        required = condition.required_paths if condition else frozenset()
        for path in sorted(condition.paths) if condition else ():
            problem = path_problem(reading, step_id, path, required=path in required)
            if problem is not None:
                pointer = reading.param_pointer(step_id, param)
                yield DefinitionFinding("condition_paths_known", pointer, problem.message, problem.suggestion)


def condition_types_fit(reading: Reading) -> Iterator[DefinitionFinding]:
    for step_id, param, source in _sources(reading):
        condition = _compiled(source)
        for problem in type_problems(condition.expression, lambda path: schema_of(reading, path)) if condition else ():
            pointer = reading.param_pointer(step_id, param)
            yield DefinitionFinding("condition_types_fit", pointer, problem.message, problem.suggestion)


def template_paths_known(reading: Reading) -> Iterator[DefinitionFinding]:
    """A missing value of a template is null, so its step must be upstream on one path only."""
    for step_id, _, kind in reading.of_kind():
        for param in kind.templates:
            for where, path in placeholders(reading.params(step_id).get(param)):
                problem = path_problem(reading, step_id, path, required=False)
                if problem is not None:
                    pointer = reading.param_pointer(step_id, param, *where)
                    yield DefinitionFinding("template_paths_known", pointer, problem.message, problem.suggestion)


def _sources(reading: Reading) -> Iterator[tuple[str, str, str]]:
    """(step, param, source). An `expr` is a condition even where the kind is not known."""
    for step_id in reading.steps:
        kind, params = reading.kind(step_id), reading.params(step_id)
        for param in kind.expressions if kind else ("expr",):
            if isinstance(params.get(param), str):
                yield step_id, param, params[param]


def _compiled(source: str) -> Condition | None:
    try:
        return compile_condition(source)
    except ConditionError:
        return None
