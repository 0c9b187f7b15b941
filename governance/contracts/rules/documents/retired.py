"""Settings that documents had once and that nothing reads any more. A contract that was approved with one keeps its
document; what is written now must not have it."""

from __future__ import annotations

from typing import Any

# Tables were never split by month, and lease and intent are one commit: no lease expires before its intent.
_FIELDS = {"durable_attempt_store": frozenset({"partitioning"})}
_TRIGGERS = {"failure_quarantine": frozenset({"lease_expired_before_intent"})}


def without_retired(area_name: str, document: Any) -> Any:
    """The stored document as its area reads it now, so that a change of another document is not refused for it."""
    if not isinstance(document, dict):
        return document
    found = {name: value for name, value in document.items() if name not in _FIELDS.get(area_name, ())}
    gone = _TRIGGERS.get(area_name, frozenset())
    if gone and isinstance(found.get("triggers"), list):
        found["triggers"] = [row for row in found["triggers"] if not (isinstance(row, dict) and row.get("on") in gone)]
    return found
