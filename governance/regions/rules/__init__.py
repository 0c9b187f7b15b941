"""Regional profiles: engineering defaults for retention, residency, failover, export and deletion. Pure: no
database."""

from governance.regions.rules.errors import ProfilesInvalidError, RegionError, RegionUnsetError, UnknownRegionError
from governance.regions.rules.load import load_profiles, parse_profiles
from governance.regions.rules.merge import EffectiveProfile, merge, tighten
from governance.regions.rules.placement import residency_allows
from governance.regions.rules.profile import Profile, ProfileSet
from governance.regions.rules.retention import retention_until, years_later
from governance.regions.rules.terms import RegionRequirements

__all__ = [
    "EffectiveProfile",
    "Profile",
    "ProfileSet",
    "ProfilesInvalidError",
    "RegionError",
    "RegionRequirements",
    "RegionUnsetError",
    "UnknownRegionError",
    "load_profiles",
    "merge",
    "parse_profiles",
    "residency_allows",
    "retention_until",
    "tighten",
    "years_later",
]
