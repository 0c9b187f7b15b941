"""Rebuilds the merged regional profile from its snapshot, so that a replay does not need the profile file of then."""

from dataclasses import dataclass
from typing import Any, Final

from governance.enforcement.rules.schemas import TEXT, Schema
from governance.enforcement.rules.shape import validator
from governance.enforcement.rules.snapshots import SnapshotMalformed
from governance.regions.rules import EffectiveProfile, Profile, RegionRequirements

_TEXTS: Final[Schema] = {"type": "array", "items": TEXT}
REGION_SCHEMA: Final[Schema] = {
    "type": "object",
    "required": ["profiles", "terms"],
    "properties": {
        "profiles": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["code", "version", "sha256"],
                "properties": {"code": TEXT, "version": TEXT, "sha256": TEXT},
            },
        },
        "terms": {
            "type": "object",
            "required": ["residency", "failover_regions", "blocked_destinations"],
            "properties": {
                "residency": {
                    "enum": ["in_country_required", "in_country_copy_required", "conditional_transfer", "free"]
                },
                "failover_regions": _TEXTS,
                "blocked_destinations": _TEXTS,
            },
        },
    },
}
_VALIDATOR: Final = validator(REGION_SCHEMA)


@dataclass(frozen=True, slots=True)
class RegionTerms:
    codes: frozenset[str]
    profile: EffectiveProfile


def compile_region(snapshot: dict[str, Any]) -> RegionTerms:
    """The profile of a snapshot. Raises SnapshotMalformed."""
    # The snapshot does not have the members' own terms, so each member gets the merged ones: failover regions that all
    # list, and destinations that any of them blocks. That is never looser than its own terms.
    if not _VALIDATOR.is_valid(snapshot):
        raise SnapshotMalformed
    terms = _placement_terms(snapshot["terms"])
    members = tuple(
        Profile(
            code=member["code"],
            name=member["code"],
            seed_region=False,
            version=member["version"],
            sha256=member["sha256"],
            terms=terms,
            canonical=b"",
        )
        for member in snapshot["profiles"]
    )
    return RegionTerms(frozenset(member.code for member in members), EffectiveProfile(members=members, terms=terms))


def _placement_terms(terms: dict[str, Any]) -> RegionRequirements:
    """Reads the three values that decide where records may be kept."""
    # The other values are not used here. They get the strictest meaning, in case somebody uses them one day.
    return RegionRequirements(
        retention_years=100,
        auto_purge=False,
        residency=terms["residency"],
        failover_regions=frozenset(terms["failover_regions"]),
        blocked_destinations=frozenset(terms["blocked_destinations"]),
        export_days=1,
        deletion_days=1,
        during_retention="restrict",
        breach_hours=1,
        hold_blocks_deletion=True,
        hold_blocks_purge=True,
        hold_release_needs_two_people=True,
    )
