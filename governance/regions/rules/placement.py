"""Decides whether records under these profiles may be kept in a given region. In doubt, they may not."""

from __future__ import annotations

import re

from governance.regions.rules.merge import EffectiveProfile
from governance.regions.rules.profile import Profile
from governance.regions.rules.terms import RESIDENCY_LEVELS

_ANYWHERE = "*"
_CODE = re.compile(r"[A-Z]{2}", re.ASCII)


def residency_allows(effective: EffectiveProfile, *, deployment_region: str) -> bool:
    """Whether a deployment in that region may keep the records. Every region of record must allow it, at the strictest
    level of all. An empty, malformed or unknown deployment region is never allowed."""
    level = effective.terms.residency
    return all(_suits(member, place=deployment_region, level=level) for member in effective.members)


def _suits(member: Profile, *, place: str, level: str) -> bool:
    if place == member.code:
        return True
    # `in_country_copy_required` also needs the deployment to be in the country: it cannot prove a copy elsewhere.
    if level in RESIDENCY_LEVELS[:2] or not _CODE.fullmatch(place) or _blocked(member, place=place):
        return False
    # A transfer needs a legal agreement, which the program cannot check. So only regions that the profile lists count.
    return level == "free" or place in member.terms.failover_regions


def _blocked(member: Profile, *, place: str) -> bool:
    return bool({place, _ANYWHERE} & member.terms.blocked_destinations)
