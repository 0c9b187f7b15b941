"""Settings of throttles_and_misuse, metadata_boundary and regional_compliance, each changed alone."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from governance.contracts.rules.documents import default_documents
from governance.outside.valkey import valkey
from governance.retention.services.deletion import deletion_request
from governance.retention.services.export import export_request
from governance.throttles.services import STRIKES
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.factories import OrganizationFactory
from tests.governance.decide.test_regions import other_profiles as other_profiles
from tests.governance.regions.made_up import shipped
from tests.leaves.support import ask, attempt_of, changed, inner, opened, said

DIMENSIONS = ["tenant", "user", "service", "workflow", "context", "region"]
REGIONS = ["US", "AE", "SA", "KW", "NG", "KE", "RW", "GH", "EU"]


@pytest.mark.parametrize("per", DIMENSIONS)
def test_requests_are_counted_over_the_window_that_the_contract_says(cast: Cast, caller: Any, per: str) -> None:
    documents = default_documents()
    for row in documents["throttles_and_misuse"]["limits"]:
        if row["per"] == per:
            row["window_seconds"] = 600
    opened(cast, documents)
    assert f'"{per}";q=' in (policy := ask(caller)["RateLimit-Policy"])
    assert [part.partition(";w=")[2] for part in policy.split(", ") if f'"{per}"' in part] == ["600"]


@pytest.mark.django_db(transaction=True)
def test_strikes_are_counted_over_the_window_that_the_contract_says(cast: Cast) -> None:
    opened(cast, inner("throttles_and_misuse", "misuse", window_seconds=30))
    caller = cast.api("attempts:create")
    before = set(valkey().scan_iter(f"{STRIKES}*"))
    assert ask(caller, metadata={"note": "jane.canary@example.com"}).status_code == 422
    (key,) = set(valkey().scan_iter(f"{STRIKES}*")) - before
    assert 0 < valkey().ttl(key) <= 30


LISTED = {"type": "object", "additionalProperties": False, "properties": {"source": {"type": "string"}}}


def test_metadata_that_the_contract_lists_is_accepted(cast: Cast, caller: Any) -> None:
    listed = LISTED | {"properties": {"source": {"type": "string", "maxLength": 40}}}
    opened(cast, changed("metadata_boundary", schema=listed))
    assert ask(caller, metadata={"source": "clinic-app"}).status_code == 201


@pytest.mark.parametrize(
    ("bound", "metadata", "rule"),
    [
        ({"max_bytes": 10}, {"source": "clinic-app"}, "too_large"),
        ({"max_depth": 1}, {"inside": {"source": "app"}}, "too_deep"),
        ({"forbidden_keys": ["source"]}, {"source": "clinic-app"}, "forbidden_key"),
    ],
    ids=["max_bytes", "max_depth", "forbidden_keys"],
)
def test_metadata_beyond_a_bound_of_the_contract_is_refused(
    cast: Cast, caller: Any, bound: dict[str, Any], metadata: dict[str, Any], rule: str
) -> None:
    text = {"type": "string", "maxLength": 40}
    inside = {"type": "object", "additionalProperties": False, "properties": {"source": text}}
    schema = LISTED | {"properties": {"source": text, "inside": inside}}
    opened(cast, changed("metadata_boundary", schema=schema, **bound))
    answer = ask(caller, metadata=metadata)
    assert answer.status_code == 422
    assert rule in {error["rule"] for error in answer.json()["errors"]}


def test_a_detector_that_the_contract_switches_off_finds_nothing(cast: Cast, caller: Any) -> None:
    schema = LISTED | {"properties": {"source": {"type": "string", "maxLength": 80}}}
    opened(cast, changed("metadata_boundary", schema=schema, detectors={"disabled": ["email"]}))
    assert ask(caller, metadata={"source": "desk@example.com"}).status_code == 201


@pytest.mark.parametrize("region", REGIONS)
def test_a_region_that_the_contract_does_not_list_is_denied(cast: Cast, settings: Any, region: str) -> None:
    settings.DEPLOYMENT_REGION = region
    cast.organization = OrganizationFactory(slug="clinic", regions=[region])  # type: ignore[misc]
    opened(cast, changed("regional_compliance", regions=[code for code in REGIONS if code != region]))
    assert said(ask(cast.api("attempts:create"))) == (403, "residency_violation")


def test_records_are_kept_as_long_as_the_contract_says(cast: Cast, caller: Any) -> None:
    opened(cast, changed("regional_compliance", retention_years=40))
    attempt = attempt_of(ask(caller))
    assert attempt.retention_until is not None
    assert attempt.retention_until.year - attempt.created_at.year == 40


def relaxed(other_profiles: Any, *, failover: list[str]) -> None:
    """The profile of Europe as counsel might relax it: records may be transferred to these regions."""
    data = shipped()
    europe = next(region for region in data["regions"] if region["code"] == "EU")
    europe["residency"]["default"] = "conditional_transfer"
    europe["failover"] |= {"mode": "listed_regions", "allowed_regions": failover}
    europe["cross_border_transfer"]["blocked_destinations"] = []
    other_profiles(data)


def test_records_stay_in_the_country_where_the_contract_says_so_whatever_the_profile_permits(
    cast: Cast, settings: Any, other_profiles: Any
) -> None:
    relaxed(other_profiles, failover=["EU", "US"])
    settings.DEPLOYMENT_REGION = "US"
    cast.organization = OrganizationFactory(slug="clinic", regions=["EU"])  # type: ignore[misc]
    caller = cast.api("attempts:create")
    opened(cast, default_documents(), slug="as-the-profile")
    assert ask(caller, slug="as-the-profile").status_code == 201
    opened(cast, changed("regional_compliance", residency="in_country_only"))
    assert said(ask(caller, 2)) == (403, "residency_violation")


@pytest.mark.parametrize("what", ["export", "deletion"])
def test_an_export_and_a_deletion_are_answered_within_seven_days_where_the_contract_says_so(
    cast: Cast, what: str
) -> None:
    opened(cast, changed("regional_compliance", **{what: "within_7_days"}))
    actor, at = cast.actor(cast.operator, [cast.organization]), timezone.now()
    about: dict[str, Any] = {"actor": actor, "at": at, "organization": cast.organization, "context_ref": "ctx-0001"}
    with every_tenant():
        if what == "export":
            due = export_request(**about, reason_code="data_subject_request").due_at
        else:
            due = deletion_request(**about).due_at
    assert due - at == timedelta(days=7)
