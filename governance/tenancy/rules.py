"""Which changes of an organization's settings widen what it may do, and which take something away. Pure."""

from collections.abc import Mapping
from typing import Any, Final

CAPS: Final = ("capacity_units", "max_concurrency", "max_open_holds", "max_runs_per_min", "max_writes_per_run")
WIDENING: Final = frozenset({*CAPS, "status", "regions"})
"""The settings that can widen. The name cannot."""


def widens(name: str, before: Any, after: Any) -> bool:
    """Whether this change lets the organization do more than before."""
    if name in CAPS:
        return bool(after > before)
    if name == "status":
        return bool(before != after and after == "active")
    if name == "regions":
        # Another region lets requests of that region in. One region less may drop the strictest profile. Only "none"
        # takes something away in any case: every attempt is denied then.
        return set(before) != set(after) and bool(after)
    return False


def widening_part(before: Mapping[str, Any], asked: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the asked settings that need a second person."""
    return {name: value for name, value in asked.items() if widens(name, before[name], value)}
