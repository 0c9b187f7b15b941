"""Values under names of their own, for the steps that follow."""

from dataclasses import replace

from workflows.kinds.base import Evaluator, Json, StepAnswer, StepKind
from workflows.kinds.shapes import CODE, bounded_value, closed


def _instant(params: Json, context: Json, evaluator: Evaluator) -> StepAnswer:
    values = {name: evaluator.value(source) for name, source in sorted(params["values"].items())}
    return StepAnswer(outcome="on_complete", output=values)


def _bind(params: Json) -> StepKind:
    return replace(KIND, output_schema=closed({name: bounded_value() for name in sorted(params["values"])}), bind=None)


KIND = StepKind(
    name="assign",
    title="Assign values",
    description="Evaluates expressions and keeps their values as the step's output.",
    params_schema=closed(
        {
            "values": {
                "type": "object",
                "minProperties": 1,
                "maxProperties": 50,
                "propertyNames": CODE,
                "additionalProperties": {"type": "string", "minLength": 1, "maxLength": 2000},
            }
        }
    ),
    outcomes=("on_complete",),
    output_schema=closed({}),
    effect="none",
    default_timeout_seconds=60,
    formats=(2,),
    instant=_instant,
    bind=_bind,
)
