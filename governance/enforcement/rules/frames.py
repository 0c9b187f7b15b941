"""Frames: the part that many decisions have in common, stored once. A decision with a frame stores only what differs,
and both together give the whole documents again, byte for byte. Pure: a verifier without a database can do it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from governance.enforcement.rules.verdict import Decision, Verdict

FRAME_FORMAT: Final = "holdpoint-frame-v1"
# Stored instead of results and environment: they are in the frame.
AS_FRAMED: Final = 1
# Fields that differ with every request. The others have few different values per contract, caller and policy, so there
# are few frames for any number of decisions. A field that varies and is not listed here would make a frame per request.
# The list may change: each frame stores its own holes.
_HOLES: Final = (
    ("envelope", "request_trace_id"),
    ("envelope", "idempotency_key"),
    ("envelope", "patient_context_ref"),
    ("envelope", "audit_event_link"),
    ("action", "operation"),
    ("action", "target_ref"),
    ("action", "payload_ref"),
    ("action", "payload_sha256"),
    ("action", "fields"),
)


@dataclass(frozen=True, slots=True)
class Framed:
    """`values` are the values of the frame's holes, in their order, then the metadata."""

    frame: dict[str, Any]
    values: list[Any]


def frame(
    decision: Decision, *, request: Mapping[str, Any], facts: Mapping[str, Any], results: Sequence[Any]
) -> Framed | None:
    """The frame of a decision and what differs from it. None for a decision that is stored whole."""
    # Denials are stored whole: their results list findings, which may be different every time.
    if decision.verdict is Verdict.DENY or facts["failures"] or "metadata" not in request:
        return None
    parts = {part: dict(request[part]) for part in ("envelope", "action")}
    holes = [hole for hole in _HOLES if hole[1] in parts[hole[0]]]
    values = [parts[part].pop(name) for part, name in holes]
    common = {
        "format": FRAME_FORMAT,
        "holes": [[part, name] for part, name in holes],
        "request": {"format": request["format"], **parts},
        "environment": {name: value for name, value in facts.items() if name != "at"},
        "results": list(results),
    }
    return Framed(common, [*values, request["metadata"]])


def framed_request(common: Mapping[str, Any], values: Any) -> Any:
    """The whole request. Values that do not fit the frame are returned as they are: a replay must be able to read an
    altered row and report it."""
    holes = common["holes"]
    if not isinstance(values, list) or len(values) != len(holes) + 1:
        return values
    request = {**common["request"], "metadata": values[-1]}
    request |= {part: dict(request[part]) for part in ("envelope", "action")}
    for (part, name), value in zip(holes, values, strict=False):
        request[part][name] = value
    return request


def framed_environment(common: Mapping[str, Any], *, at: str) -> dict[str, Any]:
    """The whole facts. Only the moment differs between decisions of a frame; it is a column of the decision."""
    return {**common["environment"], "at": at}
