"""What many decisions have in common, stored once: the frame. A decision that stands in one keeps only what differs,
and is put together again from both, bit by bit. Pure, so that a verifier with only files can do it too."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from governance.enforcement.rules.verdict import Decision, Verdict

FRAME_FORMAT: Final = "holdpoint-frame-v1"
# In the place of results and environment: they are as the frame says.
AS_FRAMED: Final = 1
# What a caller writes differently with every request. The rest follows from contract, caller, policy and a few words
# that the schemas list, so there are few frames however many decisions.
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
    """`values` fill the frame's holes, in their order."""

    frame: dict[str, Any]
    values: list[Any]


def frame(
    decision: Decision, *, request: Mapping[str, Any], facts: Mapping[str, Any], results: Sequence[Any]
) -> Framed | None:
    """None for a denial: what it found can be different every time, so it is stored as it is."""
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
    """The request again. Values that do not fit the frame (altered rows are read too) are given back as they are."""
    holes = common["holes"]
    if not isinstance(values, list) or len(values) != len(holes) + 1:
        return values
    request = {**common["request"], "metadata": values[-1]}
    request |= {part: dict(request[part]) for part in ("envelope", "action")}
    for (part, name), value in zip(holes, values, strict=False):
        request[part][name] = value
    return request


def framed_environment(common: Mapping[str, Any], *, at: str) -> dict[str, Any]:
    """The facts again; the moment is the decision's own."""
    return {**common["environment"], "at": at}
