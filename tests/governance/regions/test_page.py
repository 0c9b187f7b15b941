"""The operators' page must show the values of the data and begin with its disclaimer."""

import re
from pathlib import Path

import pytest

from governance.regions.rules import Profile, load_profiles

pytestmark = pytest.mark.unit

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "regions.md").read_text(encoding="utf-8")


def expected_row(profile: Profile) -> list[str]:
    document, terms = profile.document, profile.terms
    floor = document["retention"]["statutory_min_years"]
    return [
        profile.code,
        profile.name,
        f"{'none verified' if floor is None else floor} / {terms.retention_years}",
        f"`{document['residency']['legal_position']}` / `{terms.residency}`",
        ", ".join(sorted(terms.failover_regions)),
        str(terms.export_days),
        str(terms.deletion_days),
        str(terms.breach_hours),
        ", ".join(sorted(terms.blocked_destinations)) or "none listed",
        document["confidence"],
    ]


def test_the_page_begins_with_the_disclaimer_of_the_data() -> None:
    assert PAGE.startswith(f"# Regional profiles\n\n> {load_profiles().disclaimer}\n")


def test_the_summary_has_one_row_per_profile_with_the_values_of_the_data() -> None:
    rows = [line for line in PAGE.splitlines() if re.match(r"\| [A-Z]{2} \|", line)]
    shown = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    assert shown == [expected_row(profile) for profile in load_profiles().profiles]


def test_what_the_page_claims_about_being_stricter_is_true_of_the_data() -> None:
    for profile in load_profiles().profiles:
        assert profile.terms.residency == "in_country_required"
        assert profile.terms.retention_years >= 10
        assert not profile.terms.auto_purge
        assert profile.terms.hold_release_needs_two_people
    assert load_profiles().get("EU").terms.export_days == load_profiles().get("GB").terms.export_days == 28


def test_the_page_names_the_month_of_the_last_review() -> None:
    assert f"Last reviewed: {load_profiles().version.split('+')[1]}." in PAGE
