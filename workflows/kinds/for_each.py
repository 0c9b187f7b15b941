"""The same steps for every item of a list, some at a time."""

from workflows.kinds.base import FOR_EACH, StepKind
from workflows.kinds.shapes import CODE, JOIN, MAX_ITEMS, OTHERS, array_shape, closed

KIND = StepKind(
    name="for_each",
    title="For each item",
    description="Runs its body once for every item of a list, and goes on when enough of them have completed.",
    params_schema=closed(
        {
            "over": {"type": "string", "minLength": 1, "maxLength": 2000},
            "body": {**CODE, "description": "the id of a step"},
            "max_parallel": {"type": "integer", "minimum": 1, "maximum": 50},
            "join": JOIN,
            "others": OTHERS,
        },
        optional=("max_parallel", "join", "others"),
    ),
    outcomes=("on_complete", "on_failure"),
    output_schema=closed(
        {
            "count": {"type": "integer", "minimum": 0, "maximum": MAX_ITEMS},
            "ends": array_shape({"enum": ["completed", "failed", "cancelled"]}),
        }
    ),
    effect="none",
    failure_outcome="on_failure",
    timeout_outcome="on_failure",
    formats=(2,),
    block=FOR_EACH,
)
