"""The envelope of S4 4.2: its problems, what of it may be stored, and how one is built. Never repeats a submitted
value."""

from collections.abc import Mapping
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import Any, Final

from governance.boundary.rules import BoundaryPolicy, inspect_metadata, inspect_reference
from governance.boundary.rules.detectors import DETECTOR_NAMES
from workflows.events.rules.catalogue import envelope_schema, event_type, event_types, versions_of
from workflows.kinds.base import EventType, Json
from workflows.kinds.checking import Checker, ShapeProblem, checker

_ENVELOPE: Final = Checker(envelope_schema())
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
    found = _ENVELOPE.problems(envelope)
    if not isinstance(envelope, dict):
        return found
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
