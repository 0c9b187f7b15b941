"""A task for people of a tier: they read facts, fill in a form and choose one of the task's own outcomes."""

from dataclasses import replace
from typing import Any

from governance.boundary.rules.forms import EMPTY_FORM
from workflows.kinds.base import Evaluator, EventType, Json, StepAnswer, StepKind
from workflows.kinds.shapes import CODE, REFERENCE, bounded_value, closed

EXPIRED = "on_expired"
TIER: Json = {
    "type": "string",
    "pattern": "^[a-z0-9][a-z0-9_-]{0,53}$",
    "description": "the slug of a reviewer tier: lower-case letters, digits, - and _",
}
TITLE: Json = {"type": "string", "minLength": 1, "maxLength": 120}
# What Holdpoint's own review queue answers; no module may send it for an active run.
ANSWERED = EventType(
    name="human_task.completed",
    direction="in",
    description="A person answered a task: the outcome that they chose, who they are, and the form.",
    schema=closed(
        {
            "outcome": CODE,
            "reviewer": REFERENCE,
            "form": {
                "type": "object",
                "maxProperties": 50,
                "propertyNames": CODE,
                "additionalProperties": bounded_value(),
            },
        },
        optional=("form",),
    ),
)
_FACTS: Json = {"type": "object", "maxProperties": 50, "propertyNames": CODE}
_FORM: Json = {"type": "object", "description": "JSON Schema of a closed object of plain fields"}
_OUTCOMES: Json = {"type": "array", "items": CODE, "minItems": 1, "maxItems": 10, "uniqueItems": True}


def _prepare(params: Json, context: Json, evaluator: Evaluator) -> Json:
    """What people are shown, and what their vote is bound to."""
    return {
        "title": params["title"],
        "facts": evaluator.fill(params.get("facts", {})),
        "form": params.get("form", EMPTY_FORM),
        "outcomes": list(params["outcomes"]),
        "approvals": params.get("approvals", 1),
    }


def _answer(params: Json, payload: Json) -> StepAnswer:
    output = {"outcome": payload["outcome"], "reviewer": payload["reviewer"]} | payload.get("form", {})
    return StepAnswer(outcome=f"on_{payload['outcome']}", output=output)


def _bind(params: Json) -> StepKind:
    outcomes: list[Any] = params["outcomes"]
    form = params.get("form", EMPTY_FORM)
    fields = dict(form.get("properties", {}))
    if {"outcome", "reviewer"} & set(fields) or "expired" in outcomes or len(set(outcomes)) < len(outcomes):
        raise ValueError("a field or an outcome has a name that means something else")
    optional = tuple(name for name in fields if name not in form.get("required", ()))
    output = closed({"outcome": {"enum": outcomes}, "reviewer": REFERENCE, **fields}, optional=optional)
    return replace(
        KIND,
        outcomes=(*(f"on_{name}" for name in outcomes), EXPIRED),
        output_schema=output,
        default_timeout_seconds=params.get("expires_seconds", KIND.default_timeout_seconds),
        bind=None,
    )


KIND = StepKind(
    name="human_task",
    title="Task for people",
    description="Waits in the review queue until people of the tier have chosen an outcome and filled in the form.",
    params_schema=closed(
        {
            "tier": TIER,
            "title": TITLE,
            "facts": _FACTS,
            "form": _FORM,
            "outcomes": _OUTCOMES,
            "approvals": {"type": "integer", "minimum": 1, "maximum": 10},
            "expires_seconds": {"type": "integer", "minimum": 1, "maximum": 366 * 24 * 3600},
        },
        optional=("facts", "form", "approvals", "expires_seconds"),
    ),
    outcomes=(EXPIRED,),
    output_schema=closed({"outcome": CODE, "reviewer": REFERENCE}),
    effect="none",
    endpoint="POST /reviews/{id}/decide",
    completion=ANSWERED,
    default_timeout_seconds=3 * 24 * 3600,
    human_tier="tier",
    texts=("title",),
    formats=(2,),
    timeout_outcome=EXPIRED,
    prepare=_prepare,
    answer=_answer,
    bind=_bind,
)
