"""Branches that go on at the same time, and when their join is reached."""

from dataclasses import replace

from workflows.kinds.base import PARALLEL, Json, StepKind
from workflows.kinds.shapes import CODE, JOIN, OTHERS, closed

_STEP: Json = {**CODE, "description": "the id of a step"}
_END: Json = closed({"ended": {"enum": ["completed", "failed", "cancelled"]}})
_UNBOUND: Json = closed({})


def _bind(params: Json) -> StepKind:
    """The output says how each branch ended."""
    return replace(KIND, output_schema=closed(dict.fromkeys(sorted(params["branches"]), _END)), bind=None)


KIND = StepKind(
    name="parallel",
    title="Parallel branches",
    description="Starts several branches at once and goes on when enough of them have completed.",
    params_schema=closed(
        {
            "branches": {
                "type": "object",
                "minProperties": 1,
                "maxProperties": 20,
                "propertyNames": CODE,
                "additionalProperties": _STEP,
            },
            "join": JOIN,
            "others": OTHERS,
        },
        optional=("join", "others"),
    ),
    outcomes=("on_complete", "on_failure"),
    output_schema=_UNBOUND,
    effect="none",
    failure_outcome="on_failure",
    timeout_outcome="on_failure",
    formats=(2,),
    block=PARALLEL,
    bind=_bind,
)
