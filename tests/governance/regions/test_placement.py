"""Where records may be kept; whatever is unclear is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from governance.regions.rules import load_profiles, merge, residency_allows
from governance.regions.rules.profile import EffectiveProfile, profile_from

from .made_up import CODES, shipped

pytestmark = pytest.mark.unit


def effective(*codes: str) -> EffectiveProfile:
    return merge(load_profiles().select(codes))


def relaxed(level: str, *, failover: list[str], blocked: list[str]) -> EffectiveProfile:
    """The US profile at another residency level, as it might look after counsel has signed."""
    region = shipped()["regions"][0]
    region["residency"]["default"] = level
    region["failover"]["allowed_regions"] = failover
    region["cross_border_transfer"]["blocked_destinations"] = blocked
    return merge([profile_from(region, schema_version="1.0")])


@pytest.mark.parametrize("code", CODES)
def test_every_shipped_profile_keeps_records_at_home(code: str) -> None:
    for place in CODES:
        assert residency_allows(effective(code), deployment_region=place) is (place == code)


def test_two_regions_that_both_keep_records_at_home_have_no_common_place() -> None:
    assert not any(residency_allows(effective("US", "AE"), deployment_region=place) for place in CODES)


@given(place=st.text(max_size=4).filter(lambda text: text not in CODES))
def test_a_place_that_is_no_region_suits_nobody(place: str) -> None:
    for code in CODES:
        assert not residency_allows(effective(code), deployment_region=place)


def test_a_conditional_transfer_admits_only_the_listed_regions_that_are_not_blocked() -> None:
    terms = relaxed("conditional_transfer", failover=["US", "GB", "KW"], blocked=["KW"])
    admitted = [place for place in CODES if residency_allows(terms, deployment_region=place)]
    assert admitted == ["US", "GB"]


def test_a_required_copy_in_the_country_admits_only_the_country() -> None:
    terms = relaxed("in_country_copy_required", failover=["US", "GB"], blocked=[])
    assert [place for place in CODES if residency_allows(terms, deployment_region=place)] == ["US"]


def test_free_residency_admits_every_region_that_is_not_blocked() -> None:
    terms = relaxed("free", failover=["US"], blocked=["CN"])
    assert residency_allows(terms, deployment_region="GB")
    assert not residency_allows(terms, deployment_region="CN")
    assert not residency_allows(terms, deployment_region="")
    assert not residency_allows(terms, deployment_region="Moon")


def test_a_star_among_the_blocked_destinations_leaves_only_home() -> None:
    terms = relaxed("free", failover=["US", "GB"], blocked=["*"])
    assert [place for place in CODES if residency_allows(terms, deployment_region=place)] == ["US"]
