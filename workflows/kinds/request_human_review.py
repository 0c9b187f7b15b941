"""A person of a tier confirms or overrides. Declining returns the review to the queue; it is no outcome."""

from workflows.kinds.base import EventType, Json, StepAnswer, StepKind
from workflows.kinds.shapes import BOOLEAN, CODE, CONTEXT, DIAGNOSES, REFERENCE, closed, snapshot

_RESULT = closed(
    {"decision": {"enum": ["confirm", "override"]}, "reviewer_id": REFERENCE, "diagnoses": DIAGNOSES},
    optional=("diagnoses",),
)
_FIELDS: tuple[str, ...] = ("decision", "reviewer_id", "diagnoses")


def _payload(params: Json, context: Json) -> Json:
    return {"tier": params["tier"], "context_snapshot": snapshot(context)}


def _answer(params: Json, payload: Json) -> StepAnswer:
    return StepAnswer(outcome="on_complete", output={name: payload[name] for name in _FIELDS if name in payload})


KIND = StepKind(
    name="request_human_review",
    pack="clinical",
    title="Human review",
    description=(
        "Waits for a reviewer of the tier, in Holdpoint's own queue; with `module: true` the human-review module asks."
    ),
    params_schema=closed({"tier": CODE, "module": BOOLEAN}, optional=("module",)),
    outcomes=("on_complete",),
    output_schema=_RESULT,
    effect="none",
    module="human-review",
    endpoint="POST /human-reviews",
    request=EventType(
        name="human_review.requested",
        direction="out",
        description="Asks for a person of this tier to review the case.",
        schema=closed({"tier": CODE, "context_snapshot": CONTEXT}),
    ),
    completion=EventType(
        name="human_review.completed",
        direction="in",
        description="A reviewer confirmed or overrode what the steps before had found.",
        schema=_RESULT,
    ),
    failure=EventType(
        name="human_review.failed",
        direction="in",
        description="No review could be obtained.",
        schema=closed({"reason_code": CODE, "retryable": BOOLEAN}),
    ),
    default_timeout_seconds=86_400,
    human_tier="tier",
    payload=_payload,
    answer=_answer,
)
