"""Several regions together are never less strict than any of them, in whatever order they are named."""

from typing import Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from governance.contracts.rules.documents import area
from governance.regions.rules import (
    EffectiveProfile,
    Profile,
    RegionRequirements,
    RegionUnsetError,
    load_profiles,
    merge,
    residency_allows,
    tighten,
)
from governance.regions.rules.profile import DURING_RETENTION, RESIDENCY_LEVELS, combine

from .made_up import PLACES, profiles

pytestmark = pytest.mark.unit

some_profiles = st.lists(profiles(), min_size=1, max_size=4)
stance_schema: dict[str, Any] = area("regional_compliance").schema["properties"]
stances = st.fixed_dictionaries(
    {"retention_years": st.none() | st.integers(1, 100)}
    | {
        field: st.sampled_from(stance_schema[field]["enum"])
        for field in ("residency", "failover", "export", "deletion", "legal_hold")
    }
)


def effective(*codes: str) -> EffectiveProfile:
    return merge(load_profiles().select(codes))


def assert_never_less_strict(result: RegionRequirements, given_terms: RegionRequirements) -> None:
    assert result.retention_years >= given_terms.retention_years
    assert result.auto_purge <= given_terms.auto_purge
    assert RESIDENCY_LEVELS.index(result.residency) <= RESIDENCY_LEVELS.index(given_terms.residency)
    assert result.failover_regions <= given_terms.failover_regions
    assert result.blocked_destinations >= given_terms.blocked_destinations
    assert result.export_days <= given_terms.export_days
    assert result.deletion_days <= given_terms.deletion_days
    assert DURING_RETENTION.index(result.during_retention) <= DURING_RETENTION.index(given_terms.during_retention)
    assert result.breach_hours <= given_terms.breach_hours
    assert result.hold_blocks_deletion >= given_terms.hold_blocks_deletion
    assert result.hold_blocks_purge >= given_terms.hold_blocks_purge
    assert result.hold_release_needs_two_people >= given_terms.hold_release_needs_two_people


def assert_admits_no_more_places(result: EffectiveProfile, than: EffectiveProfile) -> None:
    for place in PLACES:
        if residency_allows(result, deployment_region=place):
            assert residency_allows(than, deployment_region=place)


@given(chosen=some_profiles, data=st.data())
def test_order_and_repetition_do_not_matter(chosen: list[Profile], data: st.DataObject) -> None:
    shuffled = data.draw(st.permutations(chosen + chosen[:2]))
    assert merge(shuffled) == merge(chosen)
    assert merge(shuffled).sha256 == merge(chosen).sha256


@given(left=profiles(), middle=profiles(), right=profiles())
def test_combining_terms_is_associative_commutative_and_idempotent(
    left: Profile, middle: Profile, right: Profile
) -> None:
    a, b, c = left.terms, middle.terms, right.terms
    assert combine(combine(a, b), c) == combine(a, combine(b, c))
    assert combine(a, b) == combine(b, a)
    assert combine(a, a) == a


@given(chosen=some_profiles)
def test_the_result_is_never_less_strict_than_any_input(chosen: list[Profile]) -> None:
    result = merge(chosen)
    for profile in chosen:
        assert_never_less_strict(result.terms, profile.terms)
        assert_admits_no_more_places(result, merge([profile]))


@given(chosen=some_profiles, stance=stances)
def test_a_contract_can_only_tighten_what_its_regions_ask_for(chosen: list[Profile], stance: dict[str, Any]) -> None:
    before = merge(chosen)
    after = tighten(before, stance=stance)
    assert_never_less_strict(after.terms, before.terms)
    assert_admits_no_more_places(after, before)
    assert tighten(after, stance=stance) == after


@given(chosen=some_profiles)
def test_the_result_can_be_recorded_as_canonical_json(chosen: list[Profile]) -> None:
    document = merge(chosen).document()
    assert rfc8785.dumps(document)
    assert {entry["sha256"] for entry in document["profiles"]} == {profile.sha256 for profile in chosen}


def test_two_shipped_regions_merge_by_the_rule_of_the_file() -> None:
    terms = effective("US", "KE").terms
    assert terms.retention_years == 10
    assert terms.residency == "in_country_required"
    assert terms.failover_regions == frozenset()
    assert (terms.export_days, terms.deletion_days, terms.breach_hours) == (7, 14, 24)
    assert terms.blocked_destinations == {"CN", "HK", "MO", "CU", "IR", "KP", "RU", "VE"}
    assert effective("US", "AE").terms.retention_years == 25


def test_merging_nothing_is_a_denial() -> None:
    with pytest.raises(RegionUnsetError):
        merge([])


def test_the_default_stance_changes_nothing_and_the_strict_one_everything_it_can() -> None:
    start = effective("EU")
    assert tighten(start, stance=area("regional_compliance").default) == start
    strict = tighten(
        start,
        stance={
            "retention_years": 30,
            "residency": "in_country_only",
            "failover": "none",
            "export": "within_7_days",
            "deletion": "within_7_days",
            "legal_hold": "compliance_releases",
        },
    )
    assert strict.terms.retention_years == 30
    assert (strict.terms.export_days, strict.terms.deletion_days) == (7, 7)
    assert "EU" not in strict.terms.failover_regions
    assert strict.hold_release_needs_compliance
    assert strict.sha256 != start.sha256
