"""The readiness board as a pure function: the status of each area, from its document and its latest decision."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from governance.contracts.rules.documents import AREAS

PENDING = "pending"
APPROVED = "approved"
REJECTED = "rejected"
REVOKED = "revoked"
STALE = "stale"
STATUS_OF = {"approve": APPROVED, "reject": REJECTED, "revoke": REVOKED}

# What a contract says besides its documents. A carried-over approval counts only while these fields are the same in
# both versions. Otherwise "no document changed" would carry an approval from a read to an irreversible write.
CORE_FIELDS = ("effect", "risk_tier", "adapter", "review_owner", "policy_slug")


@dataclass(frozen=True, slots=True)
class AreaStatus:
    area: str
    title: str
    owner_group: str
    status: str
    document: Any
    document_sha256: str
    decision: Any


def _area_status(*, verdict: str | None, decided_sha256: str, current_sha256: str, carried_core_differs: bool) -> str:
    """The status of one area. `stale`: it was approved, but for other content or another core."""
    if verdict is None:
        return PENDING
    status = STATUS_OF[verdict]
    if status == APPROVED and (decided_sha256 != current_sha256 or carried_core_differs):
        return STALE
    return status


def board(*, documents: Mapping[str, Any], latest: Mapping[str, Any], core: Mapping[str, Any]) -> list[AreaStatus]:
    """One row per area, in the fixed order. `latest` has each area's latest decision."""
    rows = []
    for area in AREAS:
        row, decision = documents[area.name], latest.get(area.name)
        carried = decision.carried_from if decision is not None else None
        differs = carried is not None and any(getattr(carried.contract, name) != core[name] for name in CORE_FIELDS)
        status = _area_status(
            verdict=decision.verdict if decision is not None else None,
            decided_sha256=decision.document_sha256 if decision is not None else "",
            current_sha256=row.sha256,
            carried_core_differs=differs,
        )
        rows.append(AreaStatus(area.name, area.title, area.owner_group, status, row.document, row.sha256, decision))
    return rows
