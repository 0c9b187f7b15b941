"""One regional profile, and the set of all profiles, as immutable values."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import rfc8785

from governance.regions.rules.errors import RegionUnsetError, UnknownRegionError
from governance.regions.rules.terms import RegionRequirements, region_requirements_of


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
        terms=region_requirements_of(region),
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
