"""All event types by name and version: those of the step kinds and the lifecycle events of runs."""

from collections.abc import Mapping

from workflows.definitions.states import Mode
from workflows.kinds import registry
from workflows.kinds.base import EventType, Json, StepKind
from workflows.kinds.shapes import CODE, DIALECT, MOMENT, REFERENCE, UUID_SCHEMA, array_shape, closed
from workflows.runs.states import InterventionAction

_MODE = {"enum": [mode.value for mode in Mode]}

CASE_CREATED = EventType(
    name="case.created",
    direction="in",
    description="A case exists. If its organization and product have an active definition, an instance starts.",
    schema=closed(
        {"patient_id": REFERENCE, "orchestration_mode": _MODE, "image_ids": array_shape(UUID_SCHEMA)},
        optional=("orchestration_mode", "image_ids"),
    ),
)
STARTED = EventType(
    name="workflow.started",
    direction="out",
    description="An instance began.",
    schema=closed({"instance_id": UUID_SCHEMA, "definition_id": UUID_SCHEMA, "mode": _MODE}),
)
HALTED = EventType(
    name="workflow.halted",
    direction="out",
    description="An instance stopped with a reason. A person may take it further.",
    schema=closed(
        {
            "instance_id": UUID_SCHEMA,
            "halt_step_id": CODE,
            "reason_code": CODE,
            "reason_note": {"type": "string", "maxLength": 280},
        },
        optional=("halt_step_id", "reason_note"),
    ),
)
COMPLETED = EventType(
    name="workflow.completed",
    direction="out",
    description="An instance reached its good end.",
    schema=closed({"instance_id": UUID_SCHEMA, "completed_at": MOMENT}),
)
CANCELLED = EventType(
    name="workflow.cancelled",
    direction="out",
    description="A person ended an instance for good; `reason` is a code, or superseded_by:<instance>.",
    schema=closed({"instance_id": UUID_SCHEMA, "cancelled_by": REFERENCE, "reason": REFERENCE}, optional=("reason",)),
)
INTERVENED = EventType(
    name="workflow.intervened",
    direction="out",
    description="A person acted on an instance.",
    schema=closed(
        {
            "instance_id": UUID_SCHEMA,
            "action": {"enum": [action.value for action in InterventionAction]},
            "performed_by": REFERENCE,
            "reason_code": CODE,
            "step_id": CODE,
        },
        optional=("step_id",),
    ),
)
LIFECYCLE: tuple[EventType, ...] = (CASE_CREATED, STARTED, HALTED, COMPLETED, CANCELLED, INTERVENED)

EVENT_NAME: Json = {
    "type": "string",
    "maxLength": 100,
    "pattern": r"^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+$",
    "description": "the name of an event type, such as case.created",
}
VERSION: Json = {"type": "string", "pattern": "^v[1-9][0-9]{0,2}$", "description": "a schema version, such as v1"}
TRACEPARENT: Json = {
    "type": "string",
    "pattern": "^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$",
    "description": "a W3C traceparent",
}
# S4 4.2, and the trace that it belongs to.
ENVELOPE_FIELDS: Json = {
    "event_id": UUID_SCHEMA,
    "event_type": EVENT_NAME,
    "schema_version": VERSION,
    "occurred_at": MOMENT,
    "correlation_id": REFERENCE,
    "causation_id": UUID_SCHEMA,
    "traceparent": TRACEPARENT,
    "case_id": UUID_SCHEMA,
    "org_id": UUID_SCHEMA,
    "product_id": UUID_SCHEMA,
    "payload": {"type": "object"},
}
OPTIONAL_FIELDS = frozenset({"causation_id", "traceparent"})


def event_types() -> list[EventType]:
    """In order of name and version."""
    return list(_catalogue().values())


def event_type(name: str, version: str = "v1") -> EventType | None:
    return _catalogue().get((name, version))


def versions_of(name: str) -> list[str]:
    """Empty: there is no such type."""
    return [version for known, version in _catalogue() if known == name]


def envelope_schema(payload: Json | None = None, *, fixed: Mapping[str, str] | None = None) -> Json:
    """Of the envelope; with the payload's schema and the type's own name and version in their places if given."""
    properties = {name: dict(field) for name, field in ENVELOPE_FIELDS.items()}
    properties |= {name: {"const": value} for name, value in (fixed or {}).items()}
    if payload is not None:
        properties["payload"] = payload
    required = [name for name in properties if name not in OPTIONAL_FIELDS]
    return {"type": "object", "additionalProperties": False, "required": required, "properties": properties}


def schema_document(event: EventType) -> Json:
    """The complete JSON Schema of one event, envelope and payload, as it is published."""
    payload = dict(event.schema)
    payload["properties"] = {
        name: {**field, "deprecated": True} if name in event.dropped else field
        for name, field in event.schema["properties"].items()
    }
    fixed = {"event_type": event.name, "schema_version": event.version}
    head = {
        "$schema": DIALECT,
        "$id": f"/api/v1/event-types/{event.name}/{event.version}",
        "title": f"{event.name} {event.version}",
        "description": event.description,
    }
    return head | envelope_schema(payload, fixed=fixed)


_Catalogue = Mapping[tuple[str, str], EventType]
_cached: tuple[Mapping[str, StepKind] | None, _Catalogue] = (None, {})


def _catalogue() -> _Catalogue:
    """Built again when a kind was added: the registry then returns another table."""
    global _cached
    kinds = registry.kind_table()
    if _cached[0] is not kinds:
        found = [*(event for kind in kinds.values() for event in kind.events), *LIFECYCLE]
        _cached = (kinds, dict(sorted({(event.name, event.version): event for event in found}.items())))
    return _cached[1]
