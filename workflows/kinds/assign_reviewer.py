"""Chooses a person of a tier. Later human tasks of that tier are for this person only."""

from workflows.kinds.base import Evaluator, EventType, Json, StepAnswer, StepKind
from workflows.kinds.human_task import TIER
from workflows.kinds.shapes import BOOLEAN, CODE, REFERENCE, closed

IN_TURN, LEAST = "round_robin", "least_loaded"
SAME, OTHER = "same_as", "not"
# The names under which a step's output says who decided it.
PEOPLE = ("reviewer", "decided_by", "reviewer_id")


def _prepare(params: Json, context: Json, evaluator: Evaluator) -> Json:
    """The tier, the rule, and the person that the rule names by a step."""
    rule = params["rule"]
    if isinstance(rule, str):
        return {"tier": params["tier"], "rule": rule}
    ((word, step),) = rule.items()
    given = context.get(step) or {}
    named = next((name for name in PEOPLE if name in given), PEOPLE[0])
    # An expression, so that a step without a person fails this step as every expression that cannot be evaluated does.
    return {"tier": params["tier"], "rule": word, "person": evaluator.value(f"{step}.{named}")}


def _answer(params: Json, payload: Json) -> StepAnswer:
    return StepAnswer(outcome="on_complete", output={"reviewer": payload["reviewer"]})


KIND = StepKind(
    name="assign_reviewer",
    title="Assign a reviewer",
    description="Chooses a person of the tier for the human tasks of that tier that follow.",
    params_schema=closed(
        {
            "tier": TIER,
            "rule": {
                "anyOf": [{"enum": [IN_TURN, LEAST]}, closed({SAME: CODE}), closed({OTHER: CODE})],
                "description": "round_robin, least_loaded, or an object with same_as or not and a step",
            },
        }
    ),
    outcomes=("on_complete",),
    output_schema=closed({"reviewer": REFERENCE}),
    effect="none",
    completion=EventType(
        name="reviewer.assigned",
        direction="in",
        description="Holdpoint chose the person.",
        schema=closed({"reviewer": REFERENCE}),
    ),
    failure=EventType(
        name="reviewer.unassigned",
        direction="in",
        description="Nobody of the tier fits the rule.",
        schema=closed({"reason_code": CODE, "retryable": BOOLEAN}),
    ),
    default_timeout_seconds=3600,
    formats=(2,),
    performed=True,
    prepare=_prepare,
    answer=_answer,
)
