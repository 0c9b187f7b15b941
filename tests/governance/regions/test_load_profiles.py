"""The shipped file is sound, and a file with faults is refused with all of them named."""

import hashlib
import json
from collections.abc import Callable
from typing import Any

import pytest
import rfc8785

from governance.regions.rules import (
    ProfilesInvalidError,
    RegionError,
    RegionUnsetError,
    UnknownRegionError,
    load_profiles,
    parse_profiles,
)

from .made_up import shipped

pytestmark = pytest.mark.unit

SEEDS = {"US", "AE", "SA", "KW", "NG", "KE", "RW", "GH", "EU"}
Data = dict[str, Any]


def region(data: Data, code: str) -> Data:
    found: Data = next(entry for entry in data["regions"] if entry["code"] == code)
    return found


def problems_after(change: Callable[[Data], object]) -> tuple[str, ...]:
    data = shipped()
    change(data)
    with pytest.raises(ProfilesInvalidError) as refusal:
        parse_profiles(json.dumps(data))
    return refusal.value.problems


def test_the_shipped_file_has_the_nine_seed_regions_and_is_read_once() -> None:
    profiles = load_profiles()
    assert {profile.code for profile in profiles.profiles if profile.seed_region} == SEEDS
    assert load_profiles() is profiles
    assert profiles.version == "1.0+2026-11"
    assert "Not legal advice" in profiles.disclaimer


def test_a_profile_carries_the_hash_of_its_canonical_json() -> None:
    data = shipped()
    for entry in data["regions"]:
        profile = load_profiles().get(entry["code"])
        assert profile.document == entry
        assert profile.sha256 == hashlib.sha256(rfc8785.dumps(entry)).hexdigest()
    assert load_profiles().sha256 == hashlib.sha256(rfc8785.dumps(data)).hexdigest()


def test_a_reader_cannot_change_a_cached_profile() -> None:
    load_profiles().get("AE").document["retention"]["default_years"] = 1
    assert load_profiles().get("AE").document["retention"]["default_years"] == 25
    with pytest.raises(AttributeError):
        load_profiles().get("AE").code = "XX"  # type: ignore[misc]


def test_no_region_and_an_unknown_region_are_both_denials_with_the_same_code() -> None:
    for nothing in ("", None):
        with pytest.raises(RegionUnsetError):
            load_profiles().get(nothing)
    with pytest.raises(RegionUnsetError):
        load_profiles().select([])
    with pytest.raises(UnknownRegionError) as refusal:
        load_profiles().select(["US", "Atlantis"])
    assert "Atlantis" not in str(refusal.value)
    assert RegionUnsetError.code == UnknownRegionError.code == RegionError.code == "region_unset"


def test_codes_are_matched_exactly() -> None:
    for near in ("us", " US", "US "):
        with pytest.raises(UnknownRegionError):
            load_profiles().get(near)


BROKEN: list[tuple[Callable[[Data], object], str]] = [
    (lambda d: d["regions"].remove(region(d, "RW")), "seed region RW is missing"),
    (lambda d: region(d, "RW").update(seed_region=False), "seed region RW is missing"),
    (lambda d: region(d, "GB").update(seed_region=True), "GB is marked as a seed region and is none"),
    (lambda d: d["regions"].append(region(d, "US")), "US appears 2 times"),
    (lambda d: region(d, "AE")["retention"].update(default_years=24), "AE: retention.default_years is below"),
    (lambda d: region(d, "AE")["residency"].update(default="free"), "AE: residency.default is looser"),
    (lambda d: region(d, "KE")["export"].update(default_days=8), "KE: export.default_days is above"),
    (lambda d: region(d, "KE")["deletion"].update(default_days=15), "KE: deletion.default_days is above"),
    (
        lambda d: region(d, "EU")["breach_notification"].update(default_hours=25),
        "EU: breach_notification.default_hours is above its shortest clock",
    ),
    (
        lambda d: region(d, "US")["failover"].update(allowed_regions=["US", "CA"]),
        "names CA, which has no profile",
    ),
    (lambda d: region(d, "US")["failover"].update(allowed_regions=["GB"]), "goes beyond its mode"),
    (
        lambda d: region(d, "SA")["cross_border_transfer"].update(blocked_destinations=["SA"]),
        "SA: cross_border_transfer.blocked_destinations names the region itself",
    ),
    (lambda d: region(d, "US")["residency"].update(default="somewhere"), "/regions/0/residency/default"),
    (lambda d: region(d, "US")["retention"].update(auto_purge=True), "/regions/0/retention/auto_purge"),
    (lambda d: region(d, "US")["retention"].update(default_years=10.0), "/regions/0/retention/default_years"),
    (
        lambda d: region(d, "US")["legal_hold"].update(blocks_purge=False),
        "/regions/0/legal_hold/blocks_purge",
    ),
    (lambda d: region(d, "US")["laws"][0].update(kind="folklore"), "/regions/0/laws/0/kind"),
    (lambda d: region(d, "US").update(retentoin={}), "/regions/0 breaks the rule additionalProperties"),
    (lambda d: d["enums"]["residency"].append("anywhere"), "/enums"),
    (lambda d: d.update(on_unknown_region="allow"), "/on_unknown_region"),
    (lambda d: d.update(disclaimer=""), "/disclaimer"),
    (lambda d: d.update(regions="none"), "seed region US is missing"),
]


@pytest.mark.parametrize(("change", "expected"), BROKEN)
def test_a_file_with_a_fault_is_refused_and_the_fault_is_named(change: Callable[[Data], object], expected: str) -> None:
    assert any(expected in problem for problem in problems_after(change))


def test_all_faults_are_named_at_once() -> None:
    def spoil(data: Data) -> None:
        region(data, "AE")["retention"]["default_years"] = 1
        region(data, "US")["residency"]["default"] = "somewhere"
        data["regions"].remove(region(data, "KW"))

    problems = problems_after(spoil)
    assert len(problems) == 3
    assert all(problem in str(ProfilesInvalidError(problems)) for problem in problems)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "[" * 100_000, '"regions"', '{"regions": [1, {}]}'])
def test_a_file_that_is_no_profile_file_is_refused_and_nothing_else_is_raised(text: str) -> None:
    with pytest.raises(ProfilesInvalidError):
        parse_profiles(text)


def test_every_number_in_the_file_is_a_whole_number_that_canonical_json_holds_exactly() -> None:
    def numbers(value: Any) -> list[Any]:
        if isinstance(value, dict | list):
            members = value.values() if isinstance(value, dict) else value
            return [number for member in members for number in numbers(member)]
        return [value] if isinstance(value, int | float) else []

    found = numbers(shipped())
    assert found
    assert all(isinstance(number, int) and abs(number) < 2**53 for number in found)
