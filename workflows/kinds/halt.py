"""The other end: the workflow stops here with a reason, and a person may take it further."""

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
