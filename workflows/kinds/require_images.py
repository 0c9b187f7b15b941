"""Checks that there are enough images. They are only counted; their quality is judged by the AI review."""

from workflows.kinds.base import EventType, Json, StepAnswer, StepKind
from workflows.kinds.shapes import BOOLEAN, COUNT, FAILURE, TERM, UUID_SCHEMA, array_shape, closed

_ASKED = closed(
    {
        "min_count": {"type": "integer", "minimum": 1, "maximum": 200},
        "image_types": array_shape(TERM, at_least=1, at_most=20, unique=True),
    },
    optional=("image_types",),
)
_RESULT = closed({"count": COUNT, "passed": BOOLEAN, "image_ids": array_shape(UUID_SCHEMA)})


def _payload(params: Json, context: Json) -> Json:
    return {name: params[name] for name in ("min_count", "image_types") if name in params}


def _answer(params: Json, payload: Json) -> StepAnswer:
    output = {name: payload[name] for name in ("count", "passed", "image_ids")}
    return StepAnswer(outcome="on_pass" if payload["passed"] else "on_fail", output=output)


KIND = StepKind(
    name="require_images",
    pack="clinical",
    title="Image check",
    description="Asks for the number of images of the case. Nothing is changed.",
    params_schema=_ASKED,
    outcomes=("on_pass", "on_fail"),
    output_schema=_RESULT,
    effect="none",
    module="clinical-api",
    endpoint="GET /cases/{case_id}/images",
    request=EventType(
        name="case.images_check.requested",
        direction="out",
        description="Asks whether the case has at least this many images of these types.",
        schema=_ASKED,
    ),
    completion=EventType(
        name="case.images_check.completed",
        direction="in",
        description="How many images there are, which, and whether they are enough.",
        schema=_RESULT,
    ),
    failure=EventType(
        name="case.images_check.failed", direction="in", description="The images could not be counted.", schema=FAILURE
    ),
    default_timeout_seconds=60,
    payload=_payload,
    answer=_answer,
)
