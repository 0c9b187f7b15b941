"""The values of a profile that the program uses, and how two sets of them combine into the stricter one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

# Strictest first; the position is the strictness.
RESIDENCY_LEVELS = ("in_country_required", "in_country_copy_required", "conditional_transfer", "free")
# `restrict` hides and stops use, `refuse_with_reason` only refuses; neither removes anything.
DURING_RETENTION = ("restrict", "refuse_with_reason")


@dataclass(frozen=True, slots=True)
class RegionRequirements:
    """What one region requires, or several together. Only whole numbers, names and sets of names."""

    retention_years: int
    auto_purge: bool
    residency: str
    failover_regions: frozenset[str]
    blocked_destinations: frozenset[str]
    export_days: int
    deletion_days: int
    during_retention: str
    breach_hours: int
    hold_blocks_deletion: bool
    hold_blocks_purge: bool
    hold_release_needs_two_people: bool


def region_requirements_of(region: dict[str, Any]) -> RegionRequirements:
    """The terms in one checked region entry of the profile file."""
    hold = region["legal_hold"]
    return RegionRequirements(
        retention_years=region["retention"]["default_years"],
        auto_purge=region["retention"]["auto_purge"],
        residency=region["residency"]["default"],
        failover_regions=frozenset(region["failover"]["allowed_regions"]),
        blocked_destinations=frozenset(region["cross_border_transfer"]["blocked_destinations"]),
        export_days=region["export"]["default_days"],
        deletion_days=region["deletion"]["default_days"],
        during_retention=region["deletion"]["during_retention"],
        breach_hours=region["breach_notification"]["default_hours"],
        hold_blocks_deletion=hold["blocks_deletion"],
        hold_blocks_purge=hold["blocks_purge"],
        hold_release_needs_two_people=hold["release_needs_two_people"],
    )


def combine(left: RegionRequirements, right: RegionRequirements) -> RegionRequirements:
    """The merge rule of the profile file for each value: the one that keeps more, moves less and answers sooner."""
    return RegionRequirements(
        retention_years=max(left.retention_years, right.retention_years),
        auto_purge=left.auto_purge and right.auto_purge,
        residency=min(left.residency, right.residency, key=RESIDENCY_LEVELS.index),
        failover_regions=left.failover_regions & right.failover_regions,
        blocked_destinations=left.blocked_destinations | right.blocked_destinations,
        export_days=min(left.export_days, right.export_days),
        deletion_days=min(left.deletion_days, right.deletion_days),
        during_retention=min(left.during_retention, right.during_retention, key=DURING_RETENTION.index),
        breach_hours=min(left.breach_hours, right.breach_hours),
        hold_blocks_deletion=left.hold_blocks_deletion or right.hold_blocks_deletion,
        hold_blocks_purge=left.hold_blocks_purge or right.hold_blocks_purge,
        hold_release_needs_two_people=left.hold_release_needs_two_people or right.hold_release_needs_two_people,
    )


def terms_document(terms: RegionRequirements) -> dict[str, Any]:
    """The terms as plain JSON with sorted lists, for decisions and evidence bundles."""
    plain = {name: getattr(terms, name) for name in RegionRequirements.__slots__}
    return {name: sorted(value) if isinstance(value, frozenset) else value for name, value in plain.items()}
