"""Requests a review by the AI module. A failure means that it could not run; low confidence is a completion."""

from workflows.kinds.base import EventType, Json, StepAnswer, StepKind
from workflows.kinds.shapes import (
    BOOLEAN,
    CODE,
    DIAGNOSES,
    REFERENCE,
    SHARE,
    UUID_SCHEMA,
    array_shape,
    closed,
    image_ids,
)

_RESULT = closed({"confidence": SHARE, "diagnoses": DIAGNOSES, "raw_response_id": REFERENCE})


def _payload(params: Json, context: Json) -> Json:
    return {"images": image_ids(context), "product_id": context.get("product_id")}


def _answer(params: Json, payload: Json) -> StepAnswer:
    output = {name: payload[name] for name in ("confidence", "diagnoses", "raw_response_id")}
    return StepAnswer(outcome="on_complete", output=output)


KIND = StepKind(
    name="run_ai_review",
    pack="clinical",
    title="AI review",
    description="Requests an AI review of the case's images. The module deduplicates on the correlation id.",
    params_schema=closed({}),
    outcomes=("on_complete", "on_failure"),
    output_schema=_RESULT,
    effect="idempotent",
    module="ai-review",
    endpoint="POST /reviews",
    request=EventType(
        name="ai_review.requested",
        direction="out",
        description="Asks the AI module to review these images.",
        schema=closed({"images": array_shape(UUID_SCHEMA), "product_id": UUID_SCHEMA}),
    ),
    completion=EventType(
        name="ai_review.completed",
        direction="in",
        description="Confidence and coded diagnoses; the full answer stays with the module, by reference.",
        schema=_RESULT,
    ),
    failure=EventType(
        name="ai_review.failed",
        direction="in",
        description="The AI module could not run. `error` is accepted for one release and never stored.",
        schema=closed(
            {"reason_code": CODE, "retryable": BOOLEAN, "error": {"type": "string", "maxLength": 4096}},
            optional=("error",),
        ),
        dropped=("error",),
    ),
    failure_outcome="on_failure",
    default_timeout_seconds=900,
    payload=_payload,
    answer=_answer,
)
