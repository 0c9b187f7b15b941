"""How much approval an outcome demands, and whether one demand covers another. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any


def demand_of(parts: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """How many different people of which tier. Parts of one tier count together."""
    found: dict[str, int] = {}
    for part in parts:
        found[part["tier"]] = found.get(part["tier"], 0) + part["approvals_required"]
    return found


def demand_in(outcome: Mapping[str, Any]) -> dict[str, int]:
    """The demand of a rule or of a decision's approval: its buckets, or its one tier."""
    return demand_of(outcome.get("buckets") or [outcome])


def covers(given: Mapping[str, int], asked: Mapping[str, int]) -> bool:
    """Whether an approval that met `given` meets `asked` too: no other tier, and no more people of any."""
    # By tier and number, never by who signed: somebody of two tiers signed for the one that they were asked for.
    return all(given.get(tier, 0) >= people for tier, people in asked.items())
