"""A branch. Calls nobody: the expression is evaluated over the outputs of the steps before it."""

from collections.abc import Callable

from workflows.kinds.base import Json, StepAnswer, StepKind
from workflows.kinds.shapes import BOOLEAN, closed


def _instant(params: Json, context: Json, decide: Callable[[str], bool]) -> StepAnswer:
    result = decide(params["expr"])
    return StepAnswer(outcome="on_true" if result else "on_false", output={"result": result})


KIND = StepKind(
    name="condition",
    title="Condition",
    description="Goes one way if the expression is true and the other if it is false.",
    params_schema=closed({"expr": {"type": "string", "minLength": 1, "maxLength": 2000}}),
    outcomes=("on_true", "on_false"),
    output_schema=closed({"result": BOOLEAN}),
    effect="none",
    default_timeout_seconds=60,
    expressions=("expr",),
    instant=_instant,
)
