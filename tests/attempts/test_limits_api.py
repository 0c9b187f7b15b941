"""What an organization is told about its caps: what runs, what waits, and that waiting takes no place."""

from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from rest_framework.test import APIClient

from attempts.execution.services.lease_expire import leases_expire
from attempts.execution.services.outcome import retries_due
from attempts.execution.services.queue import queue_dispatch
from attempts.lifecycle.selectors.limits import holds_that_worry
from attempts.notify.services.announce import reviews_announce
from attempts.reviews.models import Review
from attempts.reviews.services.clock import reviews_expire, reviews_remind
from governance.tenancy.models import Organization
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.execution.support import ask, contract
from tests.attempts.test_attempt_open import opening
from tests.attempts.test_tick_cost import copy_rows
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
    """One by the API, the others as copies of its rows."""
    assert ask(caller, 1, slug="held", connector="external").status_code == 202
    with every_tenant():
        review = Review.objects.get()
    copy_rows("attempts_attempt", review.attempt_id, 999)
    attempts = "(SELECT array_agg(id) FROM attempts_attempt a WHERE a.state = 'review-required' AND NOT EXISTS"
    attempts += " (SELECT 1 FROM attempts_review r WHERE r.attempt_id = a.id))"
    copy_rows("attempts_review", review.id, 999, attempt_id=f"({attempts})[n]")


READ = """
SELECT relname, seq_tup_read + coalesce(idx_tup_fetch, 0) FROM pg_stat_xact_user_tables
WHERE relname IN ('attempts_attempt', 'attempts_review', 'attempts_slot', 'governance_enforcementdecision')
"""


def cost(work: Callable[[], Any]) -> tuple[int, dict[str, int]]:
    """How many statements the work sends, and how many rows of the large tables they read."""

    def read() -> dict[str, int]:
        with connection.cursor() as cursor:
            cursor.execute(READ)
            return dict(cursor.fetchall())

    with every_tenant():
        before = read()
        with CaptureQueriesContext(connection) as captured:
            work()
        after = read()
    return len(captured.captured_queries), {name: after[name] - before.get(name, 0) for name in after}


def planned_as_when_large() -> None:
    """With few rows PostgreSQL reads a whole table instead of its index, and reads other rows than it would later."""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute("ANALYZE attempts_attempt, attempts_review")


def test_a_thousand_open_holds_change_nothing_for_others(cast: Cast) -> None:
    """Intake of other contracts, steps of runs, what the clock does when nothing is due, readiness, metrics and the
    overview of another organization: as many statements, and as many rows read, as with none."""
    caller = cast.api("attempts:create")
    contract(cast, slug="held", policy_slug="held", rules=HOLD, adapter="external")
    made = contract(cast, adapter="external")
    elsewhere = cast.console(cast.other_operator)
    now = timezone.now()
    idle = {
        "queue": queue_dispatch,
        "retries": retries_due,
        "leases": leases_expire,
        "reviews end": lambda: reviews_expire(at=now),
        "reviews remind": lambda: reviews_remind(at=now),
        "reviews announce": lambda: reviews_announce(at=now),
        "ready": lambda: caller.get("/health/ready"),
        "overview elsewhere": lambda: elsewhere.get("/admin/"),
    }
    numbers, keys = count(200), count(1)

    def costs() -> dict[str, Any]:
        planned_as_when_large()
        works = idle | {
            "intake": lambda: ask(caller, next(numbers), connector="external"),
            "step": lambda: opening(made, idempotency_key=f"step-{next(keys):08}"),
        }
        with transaction.atomic():  # what it adds itself must not be what differs
            for work in works.values():  # once to fill caches
                cost(work)
            found = {name: cost(work) for name, work in works.items()}
            transaction.set_rollback(True)
        return found

    with_none = costs()
    thousand_holds(caller)
    with_many = costs()
    assert {name: found[0] for name, found in with_many.items()} == {
        name: found[0] for name, found in with_none.items()
    }
    # A few rows more or less are the planner's choice of an index; the holds would be a thousand.
    grown = [many - with_none[work][1][name] for work, found in with_many.items() for name, many in found[1].items()]
    assert max(grown) < 10, (with_none, with_many)
    assert with_none["intake"][0] > 0
    for number in range(400, 410):
        assert ask(caller, number, connector="external").status_code == 201
    found = limits(caller)
    assert found["max_open_holds", ""][:2] == (10_000, 1000)
    page = cast.console(cast.operator).get("/admin/").content.decode()
    assert "1,000</a> wait for a person, the oldest since" in page


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
