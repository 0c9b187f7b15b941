"""A person of a tier confirms or overrides. Declining returns the review to the queue; it is no outcome."""

from workflows.kinds.base import EventType, Json, StepAnswer, StepKind
from workflows.kinds.shapes import BOOLEAN, CODE, CONTEXT, DIAGNOSES, REFERENCE, closed, snapshot

# Where an overriding judgement is kept, and its hash. The judgement itself stays in the reviewer's own system.
_KEPT: Json = {"type": "string", "minLength": 1, "maxLength": 200}
_RESULT = closed(
    {
        "decision": {"enum": ["confirm", "override"]},
        "reviewer_id": REFERENCE,
        "diagnoses": DIAGNOSES,
        "result_ref": _KEPT,
        "result_sha256": {"type": "string", "pattern": "^[0-9a-f]{64}$", "description": "a SHA-256 in hexadecimal"},
    },
    optional=("diagnoses", "result_ref", "result_sha256"),
)
_FIELDS: tuple[str, ...] = ("decision", "reviewer_id", "diagnoses", "result_ref", "result_sha256")


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
