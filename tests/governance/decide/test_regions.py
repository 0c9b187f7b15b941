"""Regions: shipped profiles as versioned records, stamped on every decision, and what denies."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from governance.contracts.rules.documents import default_documents
from governance.enforcement.models import EnforcementDecision, Snapshot
from governance.enforcement.services import decision_replay
from governance.ledger.models import LedgerEntry
from governance.ledger.rules.entry import canonical_sha256
from governance.regions.models import RegionProfile
from governance.regions.rules import load_profiles
from governance.regions.services import region_profiles_adopt
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.factories import OrganizationFactory
from tests.governance.decide.support import intake, problem
from tests.governance.regions.made_up import shipped
from tests.governed import open_contract
from tests.replay_plugin import forget_the_database

URL = "/api/v1/regions"
CODES = {"US", "AE", "SA", "KW", "NG", "KE", "RW", "GH", "EU", "GB"}


def decided() -> EnforcementDecision:
    with every_tenant():
        row = EnforcementDecision.objects.order_by("-id").first()
    assert row is not None
    return row


@pytest.fixture
def other_profiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Puts a changed file in the place of the shipped one."""

    def use(data: dict[str, Any]) -> None:
        file = tmp_path / "profiles.json"
        file.write_text(json.dumps(data), encoding="utf-8")
        monkeypatch.setattr("governance.regions.rules.file.PROFILE_FILE", file)
        load_profiles.cache_clear()
        forget_the_database()

    yield use
    monkeypatch.undo()
    load_profiles.cache_clear()


def test_every_shipped_profile_is_listed_with_its_hash_and_the_disclaimer(cast: Cast, operator: Any) -> None:
    rows = operator.get(URL).json()["results"]
    assert {row["code"] for row in rows} == CODES
    for row in rows:
        assert row["sha256"] == canonical_sha256(row["document"])
        assert row["disclaimer"] == load_profiles().disclaimer
        assert row["version"]
    with every_tenant():
        assert LedgerEntry.objects.filter(action="region_profile.adopted").count() == len(CODES)


def test_profiles_are_read_by_members_and_keys_that_may_read(cast: Cast) -> None:
    assert cast.session(cast.auditor).get(URL).status_code == 200
    assert cast.api("governance:read").get(URL).status_code == 200
    assert problem(cast.session(cast.nobody).get(URL)) == (403, "scope-missing")
    assert problem(cast.api("ledger:read").get(URL)) == (403, "scope-missing")
    assert problem(APIClient().get(URL)) == (401, "credential-missing")
    assert problem(cast.session(cast.auditor).get(f"{URL}?code=US")) == (400, "unknown-parameter")


def test_adopting_again_changes_nothing(db: None) -> None:
    assert region_profiles_adopt(at=timezone.now()) == []
    assert RegionProfile.objects.count() == len(CODES)


def test_a_changed_profile_is_a_new_row_and_the_old_one_stays(cast: Cast, operator: Any, other_profiles: Any) -> None:
    old = RegionProfile.objects.get(code="US")
    data = shipped()
    us = next(region for region in data["regions"] if region["code"] == "US")
    us["retention"]["default_years"] += 5
    other_profiles(data)
    (new,) = region_profiles_adopt(at=timezone.now())
    assert (new.code, new.sha256 != old.sha256) == ("US", True)
    assert RegionProfile.objects.filter(code="US").count() == 2
    listed = {row["code"]: row["sha256"] for row in operator.get(URL).json()["results"]}
    assert listed["US"] == new.sha256
    assert set(listed) == CODES
    assert region_profiles_adopt(at=timezone.now()) == []


def test_each_decision_stamps_the_profile_in_force_and_keeps_it(cast: Cast, caller: Any, other_profiles: Any) -> None:
    open_contract(cast)
    assert intake(caller).status_code == 201
    first = decided()
    snapshot = Snapshot.objects.get(sha256=first.environment["region_sha256"])
    assert (snapshot.kind, canonical_sha256(snapshot.document)) == ("region", snapshot.sha256)
    data = shipped()
    next(region for region in data["regions"] if region["code"] == "US")["retention"]["default_years"] += 5
    other_profiles(data)
    assert intake(caller, key="key-00000002").status_code == 201
    second = decided()
    assert second.environment["region_sha256"] != first.environment["region_sha256"]
    assert Snapshot.objects.filter(sha256=second.environment["region_sha256"]).exists()
    assert decision_replay(row=first).agrees
    assert decision_replay(row=second).agrees


def denied(cast: Cast) -> str:
    """The reason code of a request that must be denied and whose denial must be on record."""
    answer = intake(cast.api("attempts:create"))
    assert problem(answer) == (403, "attempt-denied")
    assert decided().reason_code == answer.json()["reason_code"]
    return str(answer.json()["reason_code"])


@pytest.mark.parametrize("regions", [[], ["XX"], ["US", "XX"]])
def test_an_organization_without_a_region_or_with_an_unknown_one_is_denied(cast: Cast, regions: list[str]) -> None:
    cast.organization = OrganizationFactory(slug="clinic", regions=regions)  # type: ignore[misc]
    open_contract(cast)
    assert denied(cast) == "region_unset"
    assert decided().environment["region_sha256"] is None


def test_records_of_a_european_organization_are_not_kept_in_an_american_deployment(cast: Cast, settings: Any) -> None:
    cast.organization = OrganizationFactory(slug="clinic", regions=["EU"])  # type: ignore[misc]
    open_contract(cast)
    settings.DEPLOYMENT_REGION = "US"
    assert denied(cast) == "residency_violation"
    settings.DEPLOYMENT_REGION = "EU"
    assert intake(cast.api("attempts:create"), key="key-00000002").status_code == 201


@pytest.mark.parametrize("here", ["", "XX"])
def test_a_deployment_that_does_not_say_where_it_is_denies(cast: Cast, settings: Any, here: str) -> None:
    cast.organization = OrganizationFactory(slug="clinic", regions=["EU"])  # type: ignore[misc]
    open_contract(cast)
    settings.DEPLOYMENT_REGION = here
    assert denied(cast) == "residency_violation"


def test_a_contract_that_does_not_list_the_organizations_region_denies(cast: Cast) -> None:
    documents = default_documents()
    documents["regional_compliance"]["regions"] = ["EU", "AE"]
    open_contract(cast, documents=documents)
    assert denied(cast) == "residency_violation"
    region = next(result for result in decided().results if result["evaluator"] == "region")
    assert region["inputs"]["outside_contract"] == ["US"]
