"""The tenth kind, in one file: a letter that must not be printed twice."""

from workflows.kinds.base import EventType, Json, StepAnswer, StepKind
from workflows.kinds.shapes import BOOLEAN, CODE, REFERENCE, closed


def _payload(params: Json, context: Json) -> Json:
    return {"form": params["form"]}


def _answer(params: Json, payload: Json) -> StepAnswer:
    return StepAnswer(outcome="on_printed", output={"letter_ref": payload["letter_ref"]})


KIND = StepKind(
    name="print_letter",
    title="Print a letter",
    description="Asks the print room for a letter.",
    params_schema=closed({"form": CODE}),
    outcomes=("on_printed",),
    output_schema=closed({"letter_ref": REFERENCE}),
    effect="once",
    module="print-room",
    endpoint="POST /letters",
    request=EventType(
        name="letter.print.requested", direction="out", description="Print this.", schema=closed({"form": CODE})
    ),
    completion=EventType(
        name="letter.print.completed", direction="in", description="Done.", schema=closed({"letter_ref": REFERENCE})
    ),
    failure=EventType(
        name="letter.print.failed",
        direction="in",
        description="Not done.",
        schema=closed({"reason_code": CODE, "retryable": BOOLEAN}),
    ),
    default_timeout_seconds=60,
    payload=_payload,
    answer=_answer,
)
