"""The metadata boundary for reports of executions: the same detectors as for the metadata of requests. Pure."""

from typing import Any

from governance.boundary.rules import BoundaryFinding, BoundaryPolicy, inspect_metadata, inspect_reference

# No schema of allowed keys: each executor reports something else. Size, depth, forbidden keys and all detectors apply.
POLICY = BoundaryPolicy(schema=None, max_bytes=4096, max_depth=3)


def outside_boundary(response_metadata: dict[str, Any]) -> tuple[BoundaryFinding, ...]:
    return inspect_metadata(response_metadata, policy=POLICY)


def report_findings(
    *, response_metadata: dict[str, Any], cost: dict[str, Any] | None = None, reversal_hint: str = ""
) -> list[BoundaryFinding]:
    """All findings in a report, with their pointers."""
    found = [
        BoundaryFinding(f"/response_metadata{_below(one)}", one.rule) for one in outside_boundary(response_metadata)
    ]
    for name in ("provider", "model"):
        if cost and cost.get(name):
            found += inspect_reference(cost[name], pointer=f"/cost/{name}")
    if reversal_hint:
        found += inspect_reference(reversal_hint, pointer="/reversal_hint")
    return found


def _below(finding: BoundaryFinding) -> str:
    """The pointer without `/metadata`: in a report the object has another name."""
    return finding.pointer.removeprefix("/metadata")
