"""Regional profiles: engineering defaults for retention, residency, failover, export and deletion. Pure: no
database."""

from governance.regions.rules.file import load_profiles, parse_profiles
from governance.regions.rules.profile import (
    EffectiveProfile,
    Profile,
    ProfileSet,
    ProfilesInvalidError,
    RegionError,
    RegionRequirements,
    RegionUnsetError,
    UnknownRegionError,
    failover_allows,
    merge,
    residency_allows,
    retention_until,
    tighten,
    years_later,
)

__all__ = [
    "EffectiveProfile",
    "Profile",
    "ProfileSet",
    "ProfilesInvalidError",
    "RegionError",
    "RegionRequirements",
    "RegionUnsetError",
    "UnknownRegionError",
    "failover_allows",
    "load_profiles",
    "merge",
    "parse_profiles",
    "residency_allows",
    "retention_until",
    "tighten",
    "years_later",
]
