"""The same steps again while an expression says so; it is asked after each round."""

from workflows.kinds.base import LOOP, StepKind
from workflows.kinds.shapes import CODE, closed

MAX_ROUNDS = 50

KIND = StepKind(
    name="loop",
    title="Loop",
    description="Runs its body, and again while the expression is true after a round, up to a number of rounds.",
    params_schema=closed(
        {
            "body": {**CODE, "description": "the id of a step"},
            "while": {"type": "string", "minLength": 1, "maxLength": 2000},
            "max_rounds": {"type": "integer", "minimum": 1, "maximum": MAX_ROUNDS},
        }
    ),
    outcomes=("on_complete", "on_exhausted"),
    output_schema=closed({"rounds": {"type": "integer", "minimum": 1, "maximum": MAX_ROUNDS}}),
    effect="none",
    timeout_outcome="on_exhausted",
    formats=(2,),
    block=LOOP,
)
