"""May records under these profiles be kept in a given region? If in doubt, no."""

from __future__ import annotations

import re

from governance.regions.rules.merge import EffectiveProfile
from governance.regions.rules.profile import Profile
from governance.regions.rules.terms import RESIDENCY_LEVELS

_ANYWHERE = "*"
_CODE = re.compile(r"[A-Z]{2}", re.ASCII)


def residency_allows(effective: EffectiveProfile, *, deployment_region: str) -> bool:
    """Whether a deployment in that region may hold the records. It must suit every region at the strictest
    level.

    An empty, malformed or unknown deployment region suits nobody.
    """
    level = effective.terms.residency
    return all(_suits(member, place=deployment_region, level=level) for member in effective.members)


def _suits(member: Profile, *, place: str, level: str) -> bool:
    if place == member.code:
        return True
    # `in_country_copy_required` also needs the place to be home: one deployment cannot prove a copy
    # elsewhere.
    if level in RESIDENCY_LEVELS[:2] or not _CODE.fullmatch(place) or _blocked(member, place=place):
        return False
    # A transfer mechanism is a contract between people; only regions the profile lists have been signed for.
    return level == "free" or place in member.terms.failover_regions


def _blocked(member: Profile, *, place: str) -> bool:
    return bool({place, _ANYWHERE} & member.terms.blocked_destinations)
