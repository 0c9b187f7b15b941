"""Regional profiles: engineering defaults for retention, residency, failover, export and deletion. Pure: no
database."""

from .errors import ProfilesInvalidError, RegionError, RegionUnsetError, UnknownRegionError
from .load import load_profiles, parse_profiles
from .merge import EffectiveProfile, merge, tighten
from .placement import residency_allows
from .profile import Profile, ProfileSet
from .retention import retention_until, years_later
from .terms import Terms

__all__ = [
    "EffectiveProfile",
    "Profile",
    "ProfileSet",
    "ProfilesInvalidError",
    "RegionError",
    "RegionUnsetError",
    "Terms",
    "UnknownRegionError",
    "load_profiles",
    "merge",
    "parse_profiles",
    "residency_allows",
    "retention_until",
    "tighten",
    "years_later",
]
