"""Overrides the case's status in the system of record."""

from workflows.kinds.base import EventType, Json, StepAnswer, StepKind
from workflows.kinds.shapes import FAILURE, TERM, closed

_RESULT = closed({"previous_status": TERM, "new_status": TERM})


def _payload(params: Json, context: Json) -> Json:
    return {"status": params["status"]}


def _answer(params: Json, payload: Json) -> StepAnswer:
    output = {name: payload[name] for name in ("previous_status", "new_status")}
    return StepAnswer(outcome="on_complete", output=output)


KIND = StepKind(
    name="set_case_status",
    pack="clinical",
    title="Set case status",
    description="Asks the system of record to set the case's status. Setting it again changes nothing.",
    params_schema=closed({"status": TERM}),
    outcomes=("on_complete",),
    output_schema=_RESULT,
    effect="idempotent",
    module="clinical-api",
    endpoint="PATCH /cases/{case_id}",
    request=EventType(
        name="case.set_status.requested",
        direction="out",
        description="Asks for the case's status to be set.",
        schema=closed({"status": TERM}),
    ),
    completion=EventType(
        name="case.set_status.completed",
        direction="in",
        description="The status before and after.",
        schema=_RESULT,
    ),
    failure=EventType(
        name="case.set_status.failed", direction="in", description="The status could not be set.", schema=FAILURE
    ),
    default_timeout_seconds=300,
    payload=_payload,
    answer=_answer,
)
