"""Regional profiles as values: their terms, the stricter of several, where records may be kept, and for how long.

A region without a profile is a denial. Pure: the file is read in `file`.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import reduce
from typing import Any

import rfc8785


class RegionError(LookupError):
    """No profile applies, so nothing may run: the reason code of every such denial is `region_unset`."""

    code = "region_unset"


class RegionUnsetError(RegionError):
    """No region of record was named."""

    def __init__(self) -> None:
        super().__init__("No region of record is set.")


class UnknownRegionError(RegionError):
    """A region was named for which there is no profile. The message does not repeat it."""

    def __init__(self) -> None:
        super().__init__("There is no profile for the named region.")


class ProfilesInvalidError(ValueError):
    """The profile file is broken; `problems` lists everything that is wrong with it."""

    code = "region_profiles_invalid"

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("The regional profiles are invalid: " + "; ".join(self.problems))


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


def _region_requirements_of(region: dict[str, Any]) -> RegionRequirements:
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


def _terms_document(terms: RegionRequirements) -> dict[str, Any]:
    """The terms as plain JSON with sorted lists, for decisions and evidence bundles."""
    plain = {name: getattr(terms, name) for name in RegionRequirements.__slots__}
    return {name: sorted(value) if isinstance(value, frozenset) else value for name, value in plain.items()}


@dataclass(frozen=True, slots=True)
class Profile:
    """The profile of one region. Two profiles are equal if their canonical JSON is."""

    code: str
    name: str = field(compare=False)
    seed_region: bool = field(compare=False)
    version: str
    sha256: str
    terms: RegionRequirements = field(compare=False, repr=False)
    canonical: bytes = field(compare=False, repr=False)

    @property
    def document(self) -> dict[str, Any]:
        """The whole entry."""
        # A new copy each time: profiles are cached, and a reader must not be able to change them.
        entry: dict[str, Any] = json.loads(self.canonical)
        return entry


def profile_from(region: dict[str, Any], *, schema_version: str) -> Profile:
    """A profile from a region entry that has passed the checks."""
    canonical = rfc8785.dumps(region)
    return Profile(
        code=region["code"],
        name=region["name"],
        seed_region=region["seed_region"],
        version=f"{schema_version}+{region['last_reviewed']}",
        sha256=hashlib.sha256(canonical).hexdigest(),
        terms=_region_requirements_of(region),
        canonical=canonical,
    )


@dataclass(frozen=True, slots=True)
class ProfileSet:
    """All profiles of one file, with the disclaimer and the hash of the file."""

    version: str
    sha256: str
    disclaimer: str
    profiles: tuple[Profile, ...]

    @property
    def codes(self) -> tuple[str, ...]:
        return tuple(profile.code for profile in self.profiles)

    def get(self, code: str | None) -> Profile:
        """The profile of a region. Raises RegionUnsetError without a code, UnknownRegionError for an unknown one."""
        if not code:
            raise RegionUnsetError
        for profile in self.profiles:
            if profile.code == code:
                return profile
        raise UnknownRegionError

    def select(self, codes: Iterable[str]) -> tuple[Profile, ...]:
        """The profiles of several regions of record. Raises RegionUnsetError if there are none."""
        chosen = tuple(self.get(code) for code in codes)
        if not chosen:
            raise RegionUnsetError
        return chosen


_SOONER_DAYS = 7


@dataclass(frozen=True, slots=True)
class EffectiveProfile:
    """Several profiles and their merged terms. `members` is sorted and without duplicates."""

    members: tuple[Profile, ...]
    terms: RegionRequirements
    hold_release_needs_compliance: bool = False

    @property
    def regions(self) -> tuple[str, ...]:
        return tuple(profile.code for profile in self.members)

    def document(self) -> dict[str, Any]:
        """Plain JSON for decisions and evidence: the profiles by hash, and the merged terms."""
        return {
            "profiles": [{"code": p.code, "version": p.version, "sha256": p.sha256} for p in self.members],
            "terms": _terms_document(self.terms),
            "hold_release_needs_compliance": self.hold_release_needs_compliance,
        }

    @property
    def sha256(self) -> str:
        return hashlib.sha256(rfc8785.dumps(self.document())).hexdigest()


def merge(profiles: Sequence[Profile]) -> EffectiveProfile:
    """The strictest combination of the profiles. Raises RegionUnsetError if there are none."""
    if not profiles:
        raise RegionUnsetError
    # Sorted and unique: the document is hashed, and the order of an organization's regions must not change the hash.
    members = tuple(sorted(set(profiles), key=lambda profile: (profile.code, profile.version, profile.sha256)))
    return EffectiveProfile(members=members, terms=reduce(combine, (profile.terms for profile in members)))


def tighten(effective: EffectiveProfile, *, stance: Mapping[str, Any]) -> EffectiveProfile:
    """Applies a contract's `regional_compliance` document. The result is never less strict, whatever the document
    says."""
    terms, years = effective.terms, stance.get("retention_years")
    sooner = {
        name: min(getattr(terms, name), _SOONER_DAYS)
        for name, field in (("export_days", "export"), ("deletion_days", "deletion"))
        if stance.get(field) == "within_7_days"
    }
    in_country = stance.get("residency") == "in_country_only"
    changed = replace(
        terms,
        retention_years=max(terms.retention_years, years or 0),
        residency=RESIDENCY_LEVELS[0] if in_country else terms.residency,
        failover_regions=frozenset() if stance.get("failover") == "none" else terms.failover_regions,
        **sooner,
    )
    compliance = effective.hold_release_needs_compliance or stance.get("legal_hold") == "compliance_releases"
    return replace(effective, terms=changed, hold_release_needs_compliance=compliance)


_ANYWHERE = "*"
_CODE = re.compile(r"[A-Z]{2}", re.ASCII)


def residency_allows(effective: EffectiveProfile, *, deployment_region: str) -> bool:
    """Whether a deployment in that region may keep the records. Every region of record must allow it, at the strictest
    level of all. An empty, malformed or unknown deployment region is never allowed."""
    level = effective.terms.residency
    return all(_suits(member, place=deployment_region, level=level) for member in effective.members)


def failover_allows(effective: EffectiveProfile, *, standby_region: str) -> bool:
    """Whether a standby or replica may run in that region: every region of record must list it for failover, and
    records must be allowed there. A contract that allows no failover leaves no region at all."""
    return standby_region in effective.terms.failover_regions and residency_allows(
        effective, deployment_region=standby_region
    )


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


def retention_until(effective: EffectiveProfile, *, started_at: datetime) -> datetime:
    """The end of retention in UTC, in calendar years from `started_at`. The profiles count from the last linked
    activity: pass its time, and compute again when there is a newer one."""
    return years_later(started_at, years=effective.terms.retention_years)


def years_later(started_at: datetime, *, years: int) -> datetime:
    """The same day a number of years later, in UTC."""
    if started_at.tzinfo is None:
        raise ValueError("A time without a zone has no place on the record.")
    start = started_at.astimezone(UTC)
    year = start.year + years
    try:
        return start.replace(year=year)
    except ValueError:
        # 29 February in a year without one. The day after it: a day too long is safe, a day too short is not.
        return start.replace(year=year, month=3, day=1)
