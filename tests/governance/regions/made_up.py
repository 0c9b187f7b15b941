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


# Made once: making a strategy takes longer than drawing from it.
REGIONS = st.sampled_from([json.dumps(region) for region in shipped()["regions"]])
FLAGS = st.booleans()
YEARS = st.integers(1, 100)
DAYS = st.integers(1, 366)
HOURS = st.integers(1, 8_760)
RESIDENCY = st.sampled_from(RESIDENCY_LEVELS)
DURING = st.sampled_from(DURING_RETENTION)
ALLOWED = st.lists(st.sampled_from(PLACES), unique=True, max_size=6)
BLOCKED = st.lists(st.sampled_from((*PLACES, "*")), unique=True, max_size=4)


@st.composite
def profiles(draw: st.DrawFn) -> Profile:
    """A profile with arbitrary terms; looser than any file the loader would accept, which is the point."""
    region = json.loads(draw(REGIONS))
    region["retention"] |= {"default_years": draw(YEARS), "auto_purge": draw(FLAGS)}
    region["residency"]["default"] = draw(RESIDENCY)
    region["failover"]["allowed_regions"] = draw(ALLOWED)
    region["cross_border_transfer"]["blocked_destinations"] = draw(BLOCKED)
    region["export"]["default_days"] = draw(DAYS)
    region["deletion"]["default_days"] = draw(DAYS)
    region["deletion"]["during_retention"] = draw(DURING)
    region["breach_notification"]["default_hours"] = draw(HOURS)
    region["legal_hold"] |= {"blocks_deletion": draw(FLAGS), "blocks_purge": draw(FLAGS)}
    region["legal_hold"]["release_needs_two_people"] = draw(FLAGS)
    return profile_from(region, schema_version="1.0")
