"""The final step: sends all results to the system of record, which decides what they mean."""

from collections.abc import Callable

from workflows.kinds.base import EventType, Json, StepAnswer, StepKind
from workflows.kinds.shapes import BOOLEAN, CONTEXT, SOURCED_DIAGNOSES, UUID_SCHEMA, closed, diagnoses, snapshot


def _payload(params: Json, context: Json) -> Json:
    shown, found = snapshot(context), diagnoses(context)
    if not params.get("include_diagnoses", True):
        shown, found = {key: _without_diagnoses(value) for key, value in shown.items()}, []
    return {"final_diagnoses": found, "context_snapshot": shown, "definition_id": context.get("definition_id")}


def _without_diagnoses(value: str | Json) -> str | Json:
    return {key: part for key, part in value.items() if key != "diagnoses"} if isinstance(value, dict) else value


def _instant(params: Json, context: Json, decide: Callable[[str], bool]) -> StepAnswer:
    return StepAnswer(outcome="on_complete", output={})


KIND = StepKind(
    name="emit_final",
    title="Final result",
    description="Emits case.workflow.completed with the whole context and ends the workflow.",
    params_schema=closed({"include_diagnoses": BOOLEAN}, optional=("include_diagnoses",)),
    outcomes=("on_complete",),
    output_schema=closed({}),
    effect="idempotent",
    module="clinical-api",
    endpoint="POST /cases/{case_id}/workflow-result",
    request=EventType(
        name="case.workflow.completed",
        direction="out",
        description="What the steps found. Which diagnosis counts is for the system of record to say.",
        schema=closed(
            {"final_diagnoses": SOURCED_DIAGNOSES, "context_snapshot": CONTEXT, "definition_id": UUID_SCHEMA}
        ),
    ),
    default_timeout_seconds=60,
    must_target={"on_complete": "TERMINAL"},
    payload=_payload,
    instant=_instant,
)
