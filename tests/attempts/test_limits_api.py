"""What an organization is told about its caps: what runs, what waits, and that waiting takes no place."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from attempts.execution.services.lease_expire import leases_expire
from attempts.execution.services.outcome import retries_due
from attempts.execution.services.queue import queue_dispatch
from attempts.lifecycle.models import Attempt
from attempts.lifecycle.selectors.limits import holds_that_worry
from governance.tenancy.models import Organization
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.execution.support import ask, contract
from tests.cast import Cast
from tests.governed import HOLD

LIMITS = "/api/v1/organizations/me/limits"


def limits(client: Any) -> dict[tuple[str, str], tuple[int, int, dict[str, int]]]:
    rows = client.get(LIMITS).json()["limits"]
    return {(row["name"], row["contract"]): (row["cap"], row["used"], row["by"]) for row in rows}


def test_the_caps_say_what_runs_and_what_waits(cast: Cast) -> None:
    caller = cast.api("attempts:create")
    queue = {"when_busy": "queue", "limits": {"per_key": 1, "per_context": 1, "per_workflow": 2, "per_tenant": None}}
    contract(cast, adapter="external", changes={"concurrency_and_locks": queue})
    contract(cast, slug="held", policy_slug="held", rules=HOLD, adapter="external")
    with every_tenant():
        Organization.objects.filter(id=cast.organization.id).update(max_concurrency=9, max_open_holds=20)
    for number in range(1, 4):
        assert ask(caller, number, connector="external").status_code == 201
        assert ask(caller, 100 + number, slug="held", connector="external").status_code == 202
    assert limits(caller) == {
        ("max_concurrency", ""): (9, 2, {"running": 2, "holds": 0, "queued": 1}),
        ("max_open_holds", ""): (20, 3, {"running": 0, "holds": 3, "queued": 0}),
        ("per_workflow", "close-case/1"): (2, 2, {"running": 2, "holds": 0, "queued": 1}),
    }


@pytest.mark.parametrize("who", ["operator", "auditor"])
def test_people_of_the_organization_may_read_them(cast: Cast, who: str) -> None:
    assert cast.session(getattr(cast, who)).get(LIMITS).status_code == 200


def test_a_key_without_the_scope_a_person_without_a_role_and_a_stranger_learn_nothing(cast: Cast) -> None:
    contract(cast, adapter="external")
    assert cast.api("ledger:read").get(LIMITS).status_code == 403
    assert cast.session(cast.nobody).get(LIMITS).status_code == 403
    assert APIClient().get(LIMITS).status_code == 401
    foreign = limits(cast.api("governance:read", organization=cast.other))
    assert set(foreign) == {("max_concurrency", ""), ("max_open_holds", "")}
    own = str(cast.organization.id)
    stranger = cast.api("governance:read", organization=cast.other)
    assert stranger.get(f"{LIMITS}?org_id={own}").status_code == 404


def thousand_holds(caller: Any) -> None:
    """One by the API, the others as copies of its row."""
    assert ask(caller, 1, slug="held", connector="external").status_code == 202
    names = ", ".join(field.column for field in Attempt._meta.local_concrete_fields if field.column != "id")
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO attempts_attempt (id, {names}) SELECT gen_random_uuid(), {names}"  # noqa: S608
            " FROM attempts_attempt, generate_series(1, 999) WHERE state = 'review-required'"
        )


def statements(work: Callable[[], Any]) -> int:
    with every_tenant(), CaptureQueriesContext(connection) as captured:
        work()
    return len(captured.captured_queries)


def test_a_thousand_open_holds_change_nothing_for_other_contracts(cast: Cast) -> None:
    """Their intake, what the clock does when nothing is due, and readiness are as with none."""
    caller = cast.api("attempts:create")
    contract(cast, slug="held", policy_slug="held", rules=HOLD, adapter="external")
    contract(cast, adapter="external")
    idle = [queue_dispatch, retries_due, leases_expire]
    ask(caller, 101, connector="external")

    def costs() -> list[int]:
        one = iter(range(200 + len(measured) * 100, 1000))
        return [statements(lambda: ask(caller, next(one), connector="external")), *[statements(work) for work in idle]]

    measured: list[list[int]] = []
    measured.append(costs())
    thousand_holds(caller)
    measured.append(costs())
    assert measured[0] == measured[1]
    for number in range(400, 410):
        assert ask(caller, number, connector="external").status_code == 201
    found = limits(caller)
    assert found["max_concurrency", ""] == (50, 13, {"running": 13, "holds": 0, "queued": 0})
    assert found["max_open_holds", ""][1] == 1000


def test_at_eighty_parts_of_a_hundred_open_holds_worry(cast: Cast) -> None:
    caller = cast.api("attempts:create")
    contract(cast, slug="held", policy_slug="held", rules=HOLD, adapter="external")
    with every_tenant():
        Organization.objects.filter(id=cast.organization.id).update(max_open_holds=5)
    for number in range(1, 4):
        ask(caller, number, slug="held", connector="external")
    with every_tenant():
        assert holds_that_worry() == []
    ask(caller, 4, slug="held", connector="external")
    with every_tenant():
        (found,) = holds_that_worry()
    assert (found.organization, found.count, found.cap) == (cast.organization, 4, 5)
    assert found.oldest is not None
