"""Hypothesis strategies for profiles that differ in every value the engine acts on, also where the data
agrees."""

import json
from typing import Any

from hypothesis import strategies as st

from governance.regions.rules import Profile, load_profiles
from governance.regions.rules.file import PROFILE_FILE
from governance.regions.rules.profile import DURING_RETENTION, RESIDENCY_LEVELS, profile_from

CODES = load_profiles().codes
PLACES = (*CODES, "CN", "FR")


def shipped() -> dict[str, Any]:
    """A fresh copy of the shipped file."""
    data: dict[str, Any] = json.loads(PROFILE_FILE.read_text(encoding="utf-8"))
    return data


@st.composite
def profiles(draw: st.DrawFn) -> Profile:
    """A profile with arbitrary terms; looser than any file the loader would accept, which is the point."""
    region = draw(st.sampled_from(shipped()["regions"]))
    flags = st.booleans()
    region["retention"] |= {"default_years": draw(st.integers(1, 100)), "auto_purge": draw(flags)}
    region["residency"]["default"] = draw(st.sampled_from(RESIDENCY_LEVELS))
    region["failover"]["allowed_regions"] = draw(st.lists(st.sampled_from(PLACES), unique=True, max_size=6))
    blocked = st.lists(st.sampled_from((*PLACES, "*")), unique=True, max_size=4)
    region["cross_border_transfer"]["blocked_destinations"] = draw(blocked)
    region["export"]["default_days"] = draw(st.integers(1, 366))
    region["deletion"]["default_days"] = draw(st.integers(1, 366))
    region["deletion"]["during_retention"] = draw(st.sampled_from(DURING_RETENTION))
    region["breach_notification"]["default_hours"] = draw(st.integers(1, 8_760))
    region["legal_hold"] |= {"blocks_deletion": draw(flags), "blocks_purge": draw(flags)}
    region["legal_hold"]["release_needs_two_people"] = draw(flags)
    return profile_from(region, schema_version="1.0")
