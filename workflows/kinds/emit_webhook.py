"""Sends an event to the organization's webhook endpoints. The step is complete once the event is in the outbox."""

from collections.abc import Callable

from workflows.kinds.base import Evaluator, EventType, Json, StepAnswer, StepKind
from workflows.kinds.shapes import METADATA, REFERENCE, RESERVED_EVENTS, RESERVED_PREFIXES, closed
from workflows.kinds.template import TEMPLATE, fill

_SENT_NAME: Json = {
    "type": "string",
    "maxLength": 100,
    "description": "an event name such as case.reviewed: lower-case words joined by dots",
    "pattern": r"^[a-z][a-z0-9_-]*(\.[a-z][a-z0-9_-]*)*$",
    "not": {"enum": list(RESERVED_EVENTS)},  # a receiver must be able to trust what these mean
}
# What a new definition may use: nothing that looks like an event of the record either.
_RECORD = "|".join(prefix.removesuffix(".") for prefix in RESERVED_PREFIXES)
_EVENT_NAME: Json = _SENT_NAME | {"not": {"anyOf": [_SENT_NAME["not"], {"pattern": rf"^({_RECORD})\."}]}}


def _payload(params: Json, context: Json) -> Json:
    """A hint for people and clients, by the rules of format 1."""
    return {"event_name": params["event_name"], "payload": fill(params.get("payload_template", {}), context)}


def _prepare(params: Json, context: Json, evaluator: Evaluator) -> Json:
    return {"event_name": params["event_name"], "payload": evaluator.fill(params.get("payload_template", {}))}


def _instant(params: Json, context: Json, decide: Callable[[str], bool]) -> StepAnswer:
    return StepAnswer(outcome="on_complete", output={})


KIND = StepKind(
    name="emit_webhook",
    title="Webhook",
    description="Emits an event to the organization's webhook endpoints and goes on at once.",
    params_schema=closed({"event_name": _EVENT_NAME, "payload_template": TEMPLATE}, optional=("payload_template",)),
    outcomes=("on_complete",),
    output_schema=closed({}),
    effect="idempotent",
    module="events",
    endpoint="POST /webhooks/emit",
    request=EventType(
        name="workflow.webhook_emit.requested",
        direction="out",
        description="Asks for a delivery to the organization's webhook endpoints.",
        schema=closed({"event_name": _SENT_NAME, "payload": METADATA}),
    ),
    completion=EventType(
        name="workflow.webhook_emit.completed",
        direction="in",
        description="The delivery was taken on. The step did not wait for it.",
        schema=closed({"delivery_id": REFERENCE}),
    ),
    default_timeout_seconds=60,
    templates=("payload_template",),
    payload=_payload,
    prepare=_prepare,
    instant=_instant,
)
