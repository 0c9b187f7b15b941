"""Lists cost the same with five rows and with fifty, and the banner costs one query."""

from collections.abc import Callable

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from governance.shutdown.services import shutdown_engage
from governance.shutdown.states import ShutdownScope
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.governance.admin.support import make_decisions, page
from tests.governed import AT, approve, make_contract, make_policy, open_contract

MOST = 30


def queries(cast: Cast, address: str) -> list[str]:
    client = cast.console(cast.operator)
    assert client.get(address).status_code == 200  # fills the caches that live as long as the process
    with CaptureQueriesContext(
        connection,
    ) as found:
        assert client.get(address).status_code == 200
    return [query["sql"] for query in found.captured_queries]


def contracts(cast: Cast, count: int, start: int) -> None:
    for index in range(start, start + count):
        approve(cast, make_contract(cast, slug=f"contract-{index}"), "metadata_boundary", "retry_and_replay")


def policies(cast: Cast, count: int, start: int) -> None:
    for index in range(start, start + count):
        make_policy(cast, slug=f"policy-{index}")


def decisions(cast: Cast, count: int, start: int) -> None:
    contract = open_contract(cast, slug=f"decided-{start}")
    make_decisions(cast, contract, count=count)


def shutdowns(cast: Cast, count: int, start: int) -> None:
    with every_tenant():
        for _ in range(count):
            shutdown_engage(
                actor=cast.actor(cast.operator, [cast.organization]),
                at=AT,
                scope=ShutdownScope.ORGANIZATION,
                organization_id=cast.organization.id,
                reason_code="planned_maintenance",
            )


def violations(cast: Cast, count: int, start: int) -> None:
    contract = make_contract(cast, slug=f"touched-{start}")
    client = cast.console(cast.operator)
    for _ in range(count):
        client.post(
            page("contract", contract.id, "readiness", "metadata_boundary"), {"verdict": "approve", "rationale": "fine"}
        )


LISTS: dict[str, Callable[[Cast, int, int], None]] = {
    "contract": contracts,
    "policy": policies,
    "enforcementdecision": decisions,
    "shutdown": shutdowns,
    "governanceviolation": violations,
}


@pytest.mark.parametrize("name", LISTS)
def test_a_list_costs_the_same_with_five_rows_and_with_fifty(cast: Cast, name: str) -> None:
    LISTS[name](cast, 5, 0)
    few = len(queries(cast, page(name)))
    LISTS[name](cast, 45, 100)
    many = queries(cast, page(name))
    assert len(many) == few
    assert len(many) <= MOST


def test_the_front_page_and_the_board_cost_the_same_with_many_contracts(cast: Cast) -> None:
    contracts(cast, 5, 0)
    few = len(queries(cast, "/admin/"))
    contracts(cast, 25, 100)
    assert len(queries(cast, "/admin/")) == few


def test_the_banner_costs_one_query(cast: Cast) -> None:
    asked = [sql for sql in queries(cast, page("policy")) if 'FROM "governance_shutdown"' in sql]
    assert len(asked) == 1
