"""What may be stored of a request: never a value that the boundary refused or that nobody could look at (law 6)."""

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
    """A copy without metadata and without the refused references. It is decided like the original, findings and all.
    Without findings there is nothing to withhold."""
    found = sorted(set(findings))
    if not found:
        return dict(request)
    pointers = {finding.pointer for finding in found}
    copy = {name: value for name, value in request.items() if name not in ("metadata", "withheld", *_PARTS)}
    for part in _PARTS:
        copy[part] = {name: value for name, value in request[part].items() if f"/{part}/{name}" not in pointers}
    if any(pointer.startswith(FIELDS_POINTER) for pointer in pointers):
        # All names go: only the first findings are listed, so the rest of the list is not known to be clean.
        copy["action"].pop("fields", None)
    return copy | {"withheld": [{"pointer": finding.pointer, "rule": finding.rule} for finding in found]}


def storable_request(request: Any, decision: Decision) -> dict[str, Any]:
    """The request as the decision allows it to be stored. Evaluating that gives the same decision again."""
    for result in decision.results:
        if result.evaluator == REQUEST_SHAPE:
            return {"format": REQUEST_FORMAT, "malformed": result.inputs["problems"]}
    if _BOUNDARY in decision.failures or not any(result.evaluator == _BOUNDARY for result in decision.results):
        return withhold(request, _UNSEEN)
    findings = boundary_findings(decision)
    return withhold(request, findings) if findings else dict(request)


def boundary_findings(decision: Decision) -> tuple[BoundaryFinding, ...]:
    """Where the boundary refused something and by which rule, for the answer to the caller."""
    return tuple(
        BoundaryFinding(place["pointer"], place["rule"])
        for result in decision.results
        if result.evaluator == _BOUNDARY
        for place in result.inputs.get("findings", ())
    )
