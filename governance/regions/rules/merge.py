"""Merges the profiles of several regions, and applies a contract's stricter terms."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import rfc8785

from governance.regions.rules.errors import RegionUnsetError
from governance.regions.rules.profile import Profile
from governance.regions.rules.terms import RESIDENCY_LEVELS, RegionRequirements, combine, terms_document

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
            "terms": terms_document(self.terms),
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
