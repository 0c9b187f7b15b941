"""What holds in each of the nine regions while work runs: placement, shutdown, failover, erasure and answers."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.utils import timezone

from governance.contracts.rules.documents import default_documents
from governance.contracts.rules.documents.areas.regional_compliance import REGION_CODES
from governance.regions.rules import load_profiles
from governance.retention.services.deletion import deletion_request
from governance.retention.services.export import export_request
from governance.shutdown.services import shutdown_engage, shutdown_release
from governance.shutdown.states import ShutdownScope
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.factories import OrganizationFactory
from tests.governance.retention.support import Clinic, attempt, results, work
from tests.governed import open_contract
from tests.leaves.support import ask, changed, said

each_region = pytest.mark.parametrize("region", REGION_CODES)
NEXT = dict(zip(REGION_CODES, [*REGION_CODES[1:], REGION_CODES[0]], strict=True))


@pytest.fixture
def at_home(cast: Cast, settings: Any, region: str) -> Cast:
    """An organization of the region, in a deployment there."""
    settings.DEPLOYMENT_REGION = region
    cast.organization = OrganizationFactory(slug="clinic", regions=[region])  # type: ignore[misc]
    return cast


def terms(region: str) -> Any:
    return load_profiles().get(region).terms


@each_region
def test_records_stay_in_the_region(at_home: Cast, settings: Any, region: str) -> None:
    open_contract(at_home)
    caller = at_home.api("attempts:create")
    assert ask(caller).status_code == 201
    settings.DEPLOYMENT_REGION = NEXT[region]
    assert said(ask(caller, 2)) == (403, "residency_violation")


@each_region
def test_a_shutdown_of_the_region_stops_its_tenants_and_no_others_until_a_second_person_releases_it(
    at_home: Cast, region: str
) -> None:
    open_contract(at_home)
    caller, executor = at_home.api("attempts:create"), at_home.api("attempts:execute")
    waiting = ask(caller).json()["id"]

    def engage(target: str) -> UUID:
        return shutdown_engage(
            actor=at_home.actor(at_home.administrator, []),
            at=timezone.now(),
            scope=ShutdownScope.REGION,
            organization_id=None,
            target=target,
            reason_code="incident_response",
            note="Ticket 17",
            installation=True,
        ).id

    with every_tenant():
        engage(NEXT[region])
    assert ask(caller, 2).status_code == 201
    with every_tenant():
        stopped = engage(region)
    assert said(ask(caller, 3)) == (403, "shutdown_engaged")
    assert executor.post(f"/api/v1/attempts/{waiting}/lease", {}, format="json").status_code == 409
    with every_tenant():
        second = at_home.actor(at_home.person("rooney"), [])
        shutdown_release(actor=second, at=timezone.now(), shutdown_id=stopped, installation=True)
    assert ask(caller, 4).status_code == 201


@each_region
def test_a_standby_may_run_where_the_profile_lists_it_and_nowhere_under_a_contract_without_failover(
    at_home: Cast, settings: Any, region: str
) -> None:
    open_contract(at_home, slug="as-the-profile")
    open_contract(at_home, documents=changed("regional_compliance", failover="none"))
    caller = at_home.api("attempts:create")
    assert ask(caller).status_code == 201
    settings.STANDBY_REGIONS = [region]
    assert ask(caller, 2, slug="as-the-profile").status_code == 201
    assert said(ask(caller, 3)) == (403, "residency_violation")
    settings.STANDBY_REGIONS = [region, NEXT[region]]
    assert said(ask(caller, 4, slug="as-the-profile")) == (403, "residency_violation")


@each_region
def test_records_are_erased_when_the_regions_time_is_over_and_not_before(at_home: Cast, region: str) -> None:
    clinic = Clinic(at_home)
    today, years = timezone.now(), terms(region).retention_years
    over = clinic.denied(1, moment=today.replace(year=today.year - years, day=1).isoformat())
    kept = clinic.denied(2, moment=today.replace(year=today.year - years + 1, day=28).isoformat())
    order = work(clinic.order())
    assert results(order) == [("done", "")]
    assert (attempt(over).erased_at is None, attempt(kept).erased_at is None) == (False, True)
    assert attempt(over).patient_context_ref != attempt(kept).patient_context_ref


@each_region
def test_an_export_and_a_deletion_are_due_when_the_regions_law_says(at_home: Cast, region: str) -> None:
    open_contract(at_home, documents=default_documents())
    actor, at = at_home.actor(at_home.operator, [at_home.organization]), timezone.now()
    about: dict[str, Any] = {"actor": actor, "at": at, "organization": at_home.organization, "context_ref": "ctx-1"}
    with every_tenant():
        export = export_request(**about, reason_code="data_subject_request")
        deletion = deletion_request(**about)
    assert export.due_at - at == timedelta(days=terms(region).export_days)
    assert deletion.due_at - at == timedelta(days=terms(region).deletion_days)
