"""Event types by name and version, and the envelope of an event: what is wrong with one, and how one is built. Pure."""

from collections.abc import Mapping
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import Any, Final
from uuid import UUID

from governance.boundary.rules import BoundaryPolicy, inspect_metadata, inspect_reference
from governance.boundary.rules.detectors import DETECTOR_NAMES
from workflows.definitions.states import Mode
from workflows.kinds import registry
from workflows.kinds.base import Checker, EventType, Json, ShapeProblem, StepKind, checker
from workflows.kinds.call_events import call_event
from workflows.kinds.shapes import CODE, DIALECT, METADATA, MOMENT, REFERENCE, UUID_SCHEMA, array_shape, closed
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
RUN_REQUESTED = EventType(
    name="run.requested",
    direction="in",
    description=(
        "Somebody wants a run of a definition. One run at a time goes on under a business key; `case_id` may be left "
        "out and is then made of organization, definition and business key."
    ),
    schema=closed(
        {
            "definition_slug": {
                "type": "string",
                "pattern": "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$",
                "description": "the slug of a definition",
            },
            "business_key": REFERENCE,
            "input": {"type": "object", "maxProperties": 200},
        },
        optional=("input",),
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
    schema=closed({"instance_id": UUID_SCHEMA, "completed_at": MOMENT, "output": METADATA}, optional=("output",)),
)
OVERDUE = EventType(
    name="workflow.overdue",
    direction="out",
    description="A step was not done by its due time. It goes on.",
    schema=closed({"instance_id": UUID_SCHEMA, "step_id": CODE, "due_at": MOMENT}),
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
LIFECYCLE: tuple[EventType, ...] = (
    *(CASE_CREATED, RUN_REQUESTED, STARTED, HALTED, COMPLETED, CANCELLED, INTERVENED, OVERDUE),
)

EVENT_NAME: Json = {
    "type": "string",
    "maxLength": 100,
    # Hyphens: the slug of a registered module may have them.
    "pattern": r"^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_-]*)+$",
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
# Types whose events may lack `case_id`: a run's case is then made of what the event names.
CASELESS = frozenset({RUN_REQUESTED.name})


def event_types() -> list[EventType]:
    """In order of name and version."""
    return list(_catalogue().values())


def event_type(name: str, version: str = "v1") -> EventType | None:
    """Of the catalogue, or of a call to a registered module, whose name says all of it."""
    return _catalogue().get((name, version)) or (call_event(name) if version == "v1" else None)


def versions_of(name: str) -> list[str]:
    """Empty: there is no such type."""
    return [version for known, version in _catalogue() if known == name] or (["v1"] if call_event(name) else [])


def envelope_schema(
    payload: Json | None = None, *, fixed: Mapping[str, str] | None = None, caseless: bool = False
) -> Json:
    """Of the envelope; with the payload's schema and the type's own name and version in their places if given.
    `caseless`: the case's id may be left out."""
    properties = {name: dict(field) for name, field in ENVELOPE_FIELDS.items()}
    properties |= {name: {"const": value} for name, value in (fixed or {}).items()}
    if payload is not None:
        properties["payload"] = payload
    optional = OPTIONAL_FIELDS | ({"case_id"} if caseless else set())
    required = [name for name in properties if name not in optional]
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
    return head | envelope_schema(payload, fixed=fixed, caseless=event.name in CASELESS)


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


_ENVELOPE: Final = Checker(envelope_schema())
_CASELESS: Final = Checker(envelope_schema(caseless=True))
# The type's schema is the allow list, so no key is forbidden here; texts still pass the detectors. The limits are far
# above what the API accepts.
_BOUNDARY: Final = BoundaryPolicy(
    schema=None,
    max_bytes=256 * 1024,
    max_depth=8,
    detectors=tuple(name for name in DETECTOR_NAMES if name != "forbidden_key"),
)


def envelope_problems(envelope: Any) -> list[ShapeProblem]:
    """Everything that is wrong, in order of place; empty: it may be taken in. Never raises, whatever it is given."""
    found = envelope_shape_problems(envelope)
    if found:
        return found
    event = event_type(envelope["event_type"], envelope["schema_version"])
    return payload_problems(event, envelope["payload"]) if event else []


def envelope_shape_problems(envelope: Any) -> list[ShapeProblem]:
    """Of the envelope alone: its fields, a moment that exists, a type and version that are known."""
    if not isinstance(envelope, dict):
        return _ENVELOPE.problems(envelope)
    name = envelope.get("event_type")
    found = (_CASELESS if isinstance(name, str) and name in CASELESS else _ENVELOPE).problems(envelope)
    wrong = {problem.pointer for problem in found}
    text = envelope.get("occurred_at")
    if isinstance(text, str) and "/occurred_at" not in wrong and event_moment(text) is None:
        found.append(ShapeProblem("/occurred_at", "must be a moment that the calendar has", "format"))
    if isinstance(envelope.get("correlation_id"), str) and "/correlation_id" not in wrong:
        findings = inspect_reference(envelope["correlation_id"], pointer="/correlation_id")
        found += [ShapeProblem(finding.pointer, finding.message, finding.rule) for finding in findings]
    if "/event_type" not in wrong and isinstance(envelope.get("event_type"), str):
        found += _type_problems(envelope["event_type"], envelope.get("schema_version"), wrong)
    return sorted(found)


def payload_problems(event: EventType, payload: Any, *, base: str = "/payload") -> list[ShapeProblem]:
    """By the type's schema, and by the detectors of the metadata boundary for what stands in its texts."""
    found = checker(event.schema).problems(payload, base=base)
    if found or not isinstance(payload, dict):
        return found
    kept = {name: value for name, value in payload.items() if name not in event.dropped}
    return [
        ShapeProblem(base + finding.pointer.removeprefix("/metadata"), finding.message, finding.rule)
        for finding in inspect_metadata(kept, policy=_BOUNDARY)
    ]


def storable(envelope: Mapping[str, Any]) -> Json:
    """Of an accepted envelope, what is kept: without the fields that are only tolerated."""
    event = event_type(envelope["event_type"], envelope["schema_version"])
    dropped = event.dropped if event else ()
    payload = {name: value for name, value in envelope["payload"].items() if name not in dropped}
    return {**envelope, "payload": payload}


def build_envelope(
    *,
    event: EventType,
    event_id: str,
    occurred_at: datetime,
    correlation_id: str,
    case_id: str,
    org_id: str,
    product_id: str,
    payload: Json,
    causation_id: str | None = None,
    traceparent: str | None = None,
) -> Json:
    """An outgoing event. Ids may be UUID objects; the moment needs a time zone."""
    envelope = {
        "event_id": str(event_id),
        "event_type": event.name,
        "schema_version": event.version,
        "occurred_at": stamp(occurred_at),
        "correlation_id": str(correlation_id),
        "case_id": str(case_id),
        "org_id": str(org_id),
        "product_id": str(product_id),
        "payload": payload,
    }
    optional = {"causation_id": causation_id, "traceparent": traceparent}
    return envelope | {name: str(value) for name, value in optional.items() if value}


def stamp(at: datetime) -> str:
    """RFC 3339 in UTC, always with six digits, so that stamps sort as text."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def event_moment(text: str) -> datetime | None:
    """In UTC, or nothing: leap seconds, 30 February and the edges of the calendar have the format and are no moment."""
    try:
        at = datetime.fromisoformat(text)
        return at.astimezone(UTC) if at.utcoffset() is not None else None
    except (ValueError, OverflowError):
        return None


def _type_problems(name: str, version: Any, wrong: set[str]) -> list[ShapeProblem]:
    versions = versions_of(name)
    if not versions:
        near = get_close_matches(name, [event.name for event in event_types()], n=1)
        advice = f"; did you mean {near[0]}?" if near else "; GET /api/v1/event-types lists them"
        return [ShapeProblem("/event_type", f"is no event type that is known here{advice}", "unknown_event_type")]
    if "/schema_version" in wrong or version is None or version in versions:
        return []
    return [ShapeProblem("/schema_version", f"must be one of: {', '.join(versions)}", "unknown_schema_version")]


def correlation_of(envelope: dict[str, Any]) -> UUID | None:
    """The correlation id, if it is one of ours. A client-driven module may send any reference, which matches no
    step."""
    try:
        return UUID(envelope["correlation_id"])
    except ValueError:
        return None
