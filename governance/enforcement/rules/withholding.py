"""What may be stored of a request: no value that the boundary refused or could not inspect (law 6)."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from governance.boundary.rules import BoundaryFinding
from governance.enforcement.rules.names import (
    FIELDS_POINTER,
    REPEATED_REFERENCES,
    REQUEST_FORMAT,
    REQUEST_SHAPE,
    UNIQUE_REFERENCES,
)
from governance.enforcement.rules.verdict import Decision

_BOUNDARY: Final = "metadata_boundary"
_PARTS: Final = ("envelope", "action")
_UNSEEN: Final = tuple(
    BoundaryFinding(pointer, "not_inspected")
    for pointer in (
        *(f"/{part}/{name}" for part, name in (*REPEATED_REFERENCES, *UNIQUE_REFERENCES)),
        FIELDS_POINTER,
        "/metadata",
    )
)


def withhold(request: Mapping[str, Any], findings: Iterable[BoundaryFinding]) -> dict[str, Any]:
    """A copy without metadata and without the refused references. Evaluating it gives the same decision with the same
    findings. Without findings the copy is complete."""
    found = sorted(set(findings))
    if not found:
        return dict(request)
    pointers = {finding.pointer for finding in found}
    copy = {name: value for name, value in request.items() if name not in ("metadata", "withheld", *_PARTS)}
    for part in _PARTS:
        copy[part] = {name: value for name, value in request[part].items() if f"/{part}/{name}" not in pointers}
    if any(pointer.startswith(FIELDS_POINTER) for pointer in pointers):
        # All field names are removed: only the first findings are listed, so the other names may be refused too.
        copy["action"].pop("fields", None)
    return copy | {"withheld": [{"pointer": finding.pointer, "rule": finding.rule} for finding in found]}


def storable_request(request: Any, decision: Decision) -> dict[str, Any]:
    """The form of the request that may be stored. Evaluating it gives the same decision again."""
    for result in decision.results:
        if result.evaluator == REQUEST_SHAPE:
            return {"format": REQUEST_FORMAT, "malformed": result.inputs["problems"]}
    # The inspection failed: nobody knows what is in the references, so none of them is stored.
    if _BOUNDARY in decision.failures or not any(result.evaluator == _BOUNDARY for result in decision.results):
        return withhold(request, _UNSEEN)
    findings = boundary_findings(decision)
    return withhold(request, findings) if findings else dict(request)


def boundary_findings(decision: Decision) -> tuple[BoundaryFinding, ...]:
    """Pointers and rules of what the boundary refused, for the answer to the caller."""
    return tuple(
        BoundaryFinding(place["pointer"], place["rule"])
        for result in decision.results
        if result.evaluator == _BOUNDARY
        for place in result.inputs.get("findings", ())
    )
