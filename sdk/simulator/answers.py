"""The answers of a module to a request. Pure: the same request and behaviour give the same answers.

So the simulator needs no memory: an answer that is made again after a crash has the same event id, and Holdpoint takes
it for a repetition.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random
from typing import Any
from uuid import NAMESPACE_OID, UUID, uuid5

from sdk.simulator.behaviour import Behaviour
from sdk.simulator.values import satisfying
from workflows.events.rules import build_envelope, event_type
from workflows.kinds.call_events import COMPLETED, FAILED, call_event_name

Json = dict[str, Any]
Said = tuple[str, Json]
LOW, EDGE, HIGH = 0.30, 0.70, 0.99
DIAGNOSES = ("L57.0", "D22.9", "C43.9", "L82.1")


@dataclass(frozen=True, slots=True)
class ModuleReply:
    """An event to send, `after` seconds after the request arrived."""

    envelope: Json
    after: float


def replies(
    request: Json, behaviour: Behaviour, *, at: datetime, returns: Mapping[str, Json] | None = None
) -> list[ModuleReply]:
    """The answer, with a repetition if the behaviour says so; empty for a request that needs no answer. `returns`: what
    the operations of registered modules return, by the event type of their request."""
    # Seeded by the request: every reader that answers it, also after a crash, gets the same numbers.
    dice = Random(f"{behaviour.seed}/{request['correlation_id']}")  # noqa: S311 - a simulation
    said = _said(request, dice, behaviour, returns or {})
    if said is None:
        return []
    name, payload = said
    first = ModuleReply(_envelope(request, name, payload, copy=0, at=at), delay(dice, behaviour))
    if dice.random() >= behaviour.duplicate_rate:
        return [first]
    # Half of the repetitions are the same event again, half have a new id. Both can arrive after the next request: the
    # engine must bear it.
    copy = dice.choice((0, 1))
    again = first.after + dice.uniform(0, 4 * behaviour.latency_ms / 1000)
    return [first, ModuleReply(_envelope(request, name, payload, copy=copy, at=at), again)]


def _said(request: Json, dice: Random, behaviour: Behaviour, returns: Mapping[str, Json]) -> Said | None:
    answer = ANSWERS.get(request["event_type"])
    if answer is not None:
        return answer(request["payload"], dice, behaviour)
    schema = returns.get(request["event_type"])
    return None if schema is None else _service(request["payload"], schema, dice, behaviour)


def _service(asked: Json, schema: Json, dice: Random, behaviour: Behaviour) -> Said:
    module, operation = asked["module"], asked["operation"]
    if dice.random() < behaviour.failure_rate:
        failed = {"reason_code": "adapter_failed", "retryable": dice.random() < behaviour.retryable_share}
        return call_event_name(module, operation, FAILED), failed
    result = satisfying(schema, dice, high=behaviour.confidence == "high")
    return call_event_name(module, operation, COMPLETED), {"result": result}


def delay(dice: Random, behaviour: Behaviour) -> float:
    """Seconds until an answer is sent. A reordered answer is overtaken by others; a late one comes after its step's
    timeout."""
    spread = dice.uniform(1 - behaviour.jitter, 1 + behaviour.jitter)
    seconds = behaviour.latency_ms / 1000 * spread
    if dice.random() < behaviour.reorder_rate:
        seconds *= dice.uniform(2, 10)
    if dice.random() < behaviour.late_rate:
        seconds += behaviour.late_seconds
    return seconds


def _envelope(request: Json, name: str, payload: Json, *, copy: int, at: datetime) -> Json:
    known = event_type(name)
    if known is None:
        raise ValueError(f"there is no event type {name}")
    return build_envelope(
        event=known,
        # Made from the request, not random: an answer that is sent again is recognized by its id.
        event_id=str(uuid5(NAMESPACE_OID, f"{request['correlation_id']}/{name}/{copy}")),
        occurred_at=at + timedelta(microseconds=copy),
        correlation_id=request["correlation_id"],
        causation_id=request["event_id"],
        traceparent=request.get("traceparent"),
        case_id=request["case_id"],
        org_id=request["org_id"],
        product_id=request["product_id"],
        payload=payload,
    )


def _consent(asked: Json, dice: Random, behaviour: Behaviour) -> Said:
    missing = [dice.choice(asked["types"])] if dice.random() < behaviour.failure_rate else []
    return "consent.check.completed", {"granted": not missing, "missing_types": missing}


def _images(asked: Json, dice: Random, behaviour: Behaviour) -> Said:
    passed = dice.random() >= behaviour.failure_rate
    count = asked["min_count"] if passed else asked["min_count"] - 1
    ids = [str(UUID(int=dice.getrandbits(128), version=4)) for _ in range(count)]
    return "case.images_check.completed", {"count": count, "passed": passed, "image_ids": ids}


def _status(asked: Json, dice: Random, behaviour: Behaviour) -> Said:
    return "case.set_status.completed", {"previous_status": "open", "new_status": asked["status"]}


def _ai(asked: Json, dice: Random, behaviour: Behaviour) -> Said:
    if dice.random() < behaviour.failure_rate:
        retryable = dice.random() < behaviour.retryable_share
        code = "ai_review_failed" if retryable else "image_quality"
        return "ai_review.failed", {"reason_code": code, "retryable": retryable}
    low = behaviour.confidence == "low" or (behaviour.confidence == "random" and dice.random() < 0.5)
    confidence = round(dice.uniform(LOW, EDGE - 0.01) if low else dice.uniform(EDGE, HIGH), 2)
    diagnosis = {"code": dice.choice(DIAGNOSES), "probability": confidence, "rank": 1}
    reference = f"resp-{dice.getrandbits(32):08x}"
    return "ai_review.completed", {"confidence": confidence, "diagnoses": [diagnosis], "raw_response_id": reference}


def _person(asked: Json, dice: Random, behaviour: Behaviour) -> Said:
    if dice.random() < behaviour.failure_rate:
        retryable = dice.random() < behaviour.retryable_share
        return "human_review.failed", {"reason_code": "review_expired", "retryable": retryable}
    decision = "override" if dice.random() < 0.25 else "confirm"
    payload: Json = {"decision": decision, "reviewer_id": f"reviewer-{dice.randint(1, 9)}"}
    if decision == "override":
        payload["diagnoses"] = [{"code": dice.choice(DIAGNOSES)}]
    return "human_review.completed", payload


# `case.workflow.completed` is missing on purpose: it needs no answer.
ANSWERS: dict[str, Callable[[Json, Random, Behaviour], Said]] = {
    "consent.check.requested": _consent,
    "case.images_check.requested": _images,
    "case.set_status.requested": _status,
    "ai_review.requested": _ai,
    "human_review.requested": _person,
}
