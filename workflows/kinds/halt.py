"""Halts the run with a reason code. A person can resume it."""

from workflows.kinds.base import StepKind
from workflows.kinds.shapes import CODE, closed

KIND = StepKind(
    name="halt",
    title="Halt",
    description="Stops the workflow with a reason code of scope halt.",
    params_schema=closed(
        {"reason_code": CODE, "note": {"type": "string", "minLength": 1, "maxLength": 280}}, optional=("note",)
    ),
    outcomes=(),
    output_schema=closed({}),
    effect="none",
    texts=("note",),
    reason_codes={"reason_code": "halt"},
)
