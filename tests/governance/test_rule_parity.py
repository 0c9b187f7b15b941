"""Rules that are said in SQL and in Python say the same: both are asked about the same random rows."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import transaction
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from governance.contracts.models import Contract
from governance.contracts.states import AdapterName, ContractState
from governance.enforcement.selectors import intake_arrival, intake_facts
from governance.enforcement.sql import (
    Closed,
    contract_open_sql,
    contracts_covered,
    key_has_ended,
    key_not_ended,
    key_not_ended_sql,
    organization_active_sql,
)
from governance.people.models import ApiKey, ServiceAccount
from governance.people.rules.keys import key_hash
from governance.people.selectors.people import credential_for_secret, live_keys
from governance.sealing.states import LEDGER_INCONSISTENT
from governance.shutdown.models import Shutdown
from governance.shutdown.selectors import shutdown_preview
from governance.shutdown.states import ShutdownScope, ShutdownState
from governance.sql.statements import fetch
from governance.tenancy.models import Organization
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.properties import examples

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
OWN_WORLD = [HealthCheck.function_scoped_fixture]  # every example undoes what it did: see `undone`
SECRET = "hp_parity_secret"
MOMENTS = st.sampled_from([None, *(AT + timedelta(microseconds=us) for us in (-1, 0, 1, 10**9))])
STATUSES = st.sampled_from(["active", "suspended"])
SLUGS = ("close-case", "close-cases", "open-case")


@contextmanager
def undone() -> Iterator[None]:
    with every_tenant(), transaction.atomic():
        yield
        transaction.set_rollback(True)


@pytest.fixture
def world(cast: Cast) -> Cast:
    """Both organizations, made before the first example, which would undo them."""
    assert cast.organization.id != cast.other.id
    assert cast.operator.id  # answers for the service
    return cast


@examples(60, suppress_health_check=OWN_WORLD)
@given(revoked=MOMENTS, expires=MOMENTS, account_status=STATUSES, organization_status=STATUSES)
def test_a_key_is_live(
    world: Cast,
    revoked: datetime | None,
    expires: datetime | None,
    account_status: str,
    organization_status: str,
) -> None:
    with undone():
        account = ServiceAccount.objects.create(
            organization=world.organization, slug="parity", responsible=world.operator
        )
        why = "" if account_status == "active" else "misuse_suspended"
        ServiceAccount.objects.filter(id=account.id).update(status=account_status, suspended_reason_code=why)
        Organization.objects.filter(id=world.organization.id).update(status=organization_status)
        key = ApiKey.objects.create(
            service_account=account,
            prefix="parity",
            sha256=key_hash(SECRET),
            scopes=["attempts:create"],
            revoked_at=revoked,
            expires_at=expires,
        )
        sql = key_not_ended_sql("k", "$2::timestamptz")
        ((not_ended,),) = fetch(f"SELECT {sql} FROM governance_apikey k WHERE k.id = $1", (key.id, AT))  # noqa: S608
        ended = key_has_ended(key, AT)
        assert [not_ended, ApiKey.objects.filter(key_not_ended(AT), id=key.id).exists()] == [not ended] * 2

        live = not ended and account_status == organization_status == "active"
        told = {
            "sql": intake_arrival(secret=SECRET, slug="none", version="1", at=AT) is not None,
            "orm": live_keys(AT).filter(id=key.id).exists(),
            "door": credential_for_secret(secret=SECRET, at=AT) is not None,
        }
        assert told == dict.fromkeys(told, live)


@st.composite
def shutdowns(draw: st.DrawFn) -> dict[str, Any]:
    scope = draw(st.sampled_from(ShutdownScope))
    versions = ("", "/1", "/2", "/01", "/", "/x")
    targets = {
        ShutdownScope.GLOBAL: st.sampled_from(["", LEDGER_INCONSISTENT]),
        ShutdownScope.ORGANIZATION: st.just(""),
        ShutdownScope.CONTRACT: st.builds("{}{}".format, st.sampled_from(SLUGS), st.sampled_from(versions)),
        ShutdownScope.CONNECTOR: st.sampled_from([name.value for name in AdapterName]),
        ShutdownScope.REGION: st.sampled_from(["US", "EU", "CA"]),
    }
    everybodys = scope in {ShutdownScope.GLOBAL, ShutdownScope.REGION}
    return {
        "scope": scope.value,
        "target": draw(targets[scope]),
        "whose": "everybodys" if everybodys else draw(st.sampled_from(["ours", "theirs"])),
        "drill": draw(st.booleans()),
        "engaged": draw(st.sampled_from([True, True, False])),
    }


def make_shutdown(cast: Cast, row: dict[str, Any]) -> Shutdown:
    organization = {"everybodys": None, "ours": cast.organization, "theirs": cast.other}[row["whose"]]
    return Shutdown.objects.create(
        scope=row["scope"],
        target=row["target"],
        organization=organization,
        drill=row["drill"],
        state=(ShutdownState.ENGAGED if row["engaged"] else ShutdownState.RELEASED).value,
        reason_code="incident",
        engaged_by_kind="person",
        engaged_by_ref="someone",
        engaged_at=AT,
        released_by_ref="" if row["engaged"] else "another",
        released_at=None if row["engaged"] else AT,
    )


def make_contract(cast: Cast, *, slug: str, version: int, state: str, adapter: str) -> Contract:
    return Contract.objects.create(
        organization=cast.organization,
        slug=slug,
        version=version,
        title="Parity",
        adapter=adapter,
        review_owner="customer_clinician",
        policy_slug="standard",
        state=state,
        snapshot_sha256=uuid4().hex * 2,
    )


CONTRACTS = st.fixed_dictionaries(
    {
        "slug": st.sampled_from(SLUGS),
        "version": st.sampled_from([1, 2]),
        "state": st.sampled_from([ContractState.OPEN.value, *(state.value for state in ContractState)]),
        "adapter": st.sampled_from([name.value for name in AdapterName]),
    }
)


@examples(80, suppress_health_check=OWN_WORLD)
@given(
    asked=CONTRACTS,
    status=STATUSES,
    regions=st.sampled_from([["US"], ["EU"], ["EU", "US"]]),
    engaged=st.lists(shutdowns(), max_size=3),
)
def test_a_contract_takes_work(
    world: Cast, asked: dict[str, Any], status: str, regions: list[str], engaged: list[dict[str, Any]]
) -> None:
    """The door's one statement, which reads the shutdowns and leaves it to Python which of them cover the contract,
    beside the ORM, which leaves all of it to the database."""
    with undone():
        Organization.objects.filter(id=world.organization.id).update(status=status, regions=regions)
        contract = make_contract(world, **asked)
        rows = [make_shutdown(world, row) for row in engaged]
        organization = Organization.objects.get(id=world.organization.id)
        facts = intake_facts(organization=organization, slug=contract.slug, version=str(contract.version))
        assert facts is not None

        conditions = f"{contract_open_sql('c')}, {organization_active_sql('o')}"
        joined = "FROM governance_contract c JOIN governance_organization o ON o.id = c.organization_id"
        ((is_open, is_active),) = fetch(f"SELECT {conditions} {joined} WHERE c.id = $1", (contract.id,))
        covering = {str(row.id) for row in rows if stops(row, contract)}
        assert {row["id"] for row in facts.shutdowns if not row["drill"]} == covering
        expected = {Closed.STATE: not is_open, Closed.ORGANIZATION: not is_active, Closed.SHUTDOWN: bool(covering)}
        assert facts.closed_by == {why for why, holds in expected.items() if holds}


def stops(row: Shutdown, contract: Contract) -> bool:
    if row.state != ShutdownState.ENGAGED or row.drill or row.organization_id not in {None, contract.organization_id}:
        return False
    return Contract.objects.filter(contracts_covered(scope=row.scope, target=row.target), id=contract.id).exists()


@examples(40, suppress_health_check=OWN_WORLD)
@given(contracts=st.lists(CONTRACTS, max_size=4, unique_by=lambda row: (row["slug"], row["version"])), row=shutdowns())
def test_a_shutdown_stops_what_its_preview_counted(
    world: Cast, contracts: list[dict[str, Any]], row: dict[str, Any]
) -> None:
    with undone():
        made = [make_contract(world, **one) for one in contracts]
        shutdown = make_shutdown(world, row | {"engaged": True, "drill": False, "whose": ours(row)})
        counted = shutdown_preview(
            scope=ShutdownScope(shutdown.scope), organization_id=shutdown.organization_id, target=shutdown.target
        )
        found = [intake_facts(organization=world.organization, slug=one.slug, version=str(one.version)) for one in made]
        assert counted["contracts"] == sum(
            facts is not None and facts.closed_by == {Closed.SHUTDOWN} for facts in found
        )


def ours(row: dict[str, Any]) -> str:
    return "everybodys" if row["whose"] == "everybodys" else "ours"
