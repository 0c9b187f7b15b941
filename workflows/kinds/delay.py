"""Waits: for a number of seconds, or until a moment."""

from datetime import UTC, datetime, timedelta

from workflows.kinds.base import Evaluator, Json, StepAnswer, StepKind
from workflows.kinds.shapes import MOMENT, closed

_SECONDS: Json = {"type": "integer", "minimum": 1, "maximum": 366 * 24 * 3600}


def _timer(params: Json, context: Json, evaluator: Evaluator, now: datetime) -> datetime:
    if "seconds" in params:
        return now + timedelta(seconds=params["seconds"])
    return evaluator.moment(params["until"])


def _answered(until: datetime) -> StepAnswer:
    text = until.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return StepAnswer(outcome="on_complete", output={"waited_until": text})


KIND = StepKind(
    name="delay",
    title="Delay",
    description="Waits for a number of seconds, or until the moment that an expression gives.",
    params_schema=closed(
        {"seconds": _SECONDS, "until": {"type": "string", "minLength": 1, "maxLength": 2000}},
        optional=("seconds", "until"),
    )
    | {"minProperties": 1, "maxProperties": 1},
    outcomes=("on_complete",),
    output_schema=closed({"waited_until": MOMENT}),
    effect="none",
    formats=(2,),
    timer=_timer,
    answered=_answered,
)
