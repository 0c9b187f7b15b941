"""The overview: figures of one's own organizations only, bounded, fresh by polling, red when something is stopped."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import time_machine
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from governance.console.models import IntakeMinute
from governance.console.services import minutes_count
from governance.enforcement.models import EnforcementDecision
from governance.enforcement.selectors import intake_by_verdict
from governance.shutdown.services import shutdown_engage
from governance.shutdown.states import ShutdownScope
from reasoncodes.base.tenancy import every_tenant, tenant_scope
from tests.attempts.test_intake import body, post
from tests.cast import Cast
from tests.governed import DENY, HOLD, open_contract
from tests.workflows.run_support import in_status
from tests.workflows.running import Running

FIGURES = "/admin/figures/"


def ask(cast: Cast, number: int, **headers: Any) -> Any:
    payload = body(patient_context_ref=f"ctx-{number:04}", action={"target_ref": f"case-{number:04}"})
    return post(cast.api("attempts:create"), payload, key=f"key-{number:08}", **headers)


def test_the_figures_say_what_is_going_on(cast: Cast) -> None:
    open_contract(cast, rules=HOLD)
    ask(cast, 1)
    running = Running(cast)
    in_status(running, "halted")
    shown = cast.console(cast.operator).get("/admin/").content.decode()
    assert 'class="hp-chart"' in shown
    assert "1</a> wait for a person" in shown
    assert "?halt_reason=consent_missing" in shown
    assert "under 15 minutes" in shown


def test_a_stranger_sees_none_of_it(cast: Cast) -> None:
    open_contract(cast, rules=HOLD)
    ask(cast, 1)
    shown = cast.console(cast.other_operator).get(FIGURES).content.decode()
    assert "Nothing waits for a person." in shown
    assert "hp-chart" not in shown
    assert Client().get(FIGURES).status_code == 302
    assert cast.console(cast.nobody).get(FIGURES).status_code == 200


def test_polling_is_answered_304_until_something_happens(cast: Cast) -> None:
    open_contract(cast, rules=HOLD)
    console = cast.console(cast.operator)
    with time_machine.travel(timezone.now(), tick=False):  # nothing grows older in between
        first = console.get(FIGURES)
        again = console.get(FIGURES, headers={"if-none-match": first["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    ask(cast, 1)
    changed = console.get(FIGURES, headers={"if-none-match": first["ETag"]})
    assert (changed.status_code, changed["ETag"] == first["ETag"]) == (200, False)
    assert console.post(FIGURES).status_code == 405


def test_an_engaged_shutdown_is_red_on_every_page_of_those_whom_it_concerns(cast: Cast) -> None:
    open_contract(cast)
    with every_tenant():
        shutdown_engage(
            actor=cast.actor(cast.operator, [cast.organization]),
            at=timezone.now(),
            scope=ShutdownScope.ORGANIZATION,
            organization_id=cast.organization.id,
            target="",
            reason_code="planned_maintenance",
            note="",
            drill=False,
        )
    console = cast.console(cast.operator)
    for path in ("/admin/", "/admin/search/?q=x", "/admin/start/", "/admin/attempts/attempt/", "/admin/start/people/"):
        shown = console.get(path).content.decode()
        assert 'class="hp-banner"' in shown, path
        assert "Shutdown engaged" in shown, path
    assert "hp-card-bad" in console.get(FIGURES).content.decode()
    assert 'class="hp-banner"' not in cast.console(cast.other_operator).get("/admin/").content.decode()


def test_denied_callers_and_reasons_of_the_last_hour(cast: Cast) -> None:
    open_contract(cast, rules=DENY)
    ask(cast, 1)
    shown = cast.console(cast.operator).get(FIGURES).content.decode()
    assert "policy_denied" in shown
    assert "Nobody in the last hour." in shown


def hours_ago(row: EnforcementDecision, hours: int, verdict: str) -> None:
    """A copy of the decision whose id, and so whose time, lies back."""
    floor = f"{int((timezone.now() - timedelta(hours=hours)).timestamp() * 1000):012x}"
    with connection.cursor() as cursor:
        cursor.execute(_copy_sql(), [f"{floor[:8]}-{floor[8:]}-7", verdict, row.id])


def _copy_sql() -> str:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT column_name FROM information_schema.columns"
            " WHERE table_name = 'governance_enforcementdecision' ORDER BY ordinal_position"
        )
        names = [name for (name,) in cursor.fetchall()]
    chosen = {"id": "(%s || substr(gen_random_uuid()::text, 16))::uuid", "verdict": "%s"}
    values = ", ".join(chosen.get(name, f"r.{name}") for name in names)
    return (
        f"INSERT INTO governance_enforcementdecision ({', '.join(names)}) SELECT {values}"  # noqa: S608
        " FROM governance_enforcementdecision r WHERE r.id = %s"
    )


@pytest.mark.tampers
def test_minutes_that_are_over_are_counted_once_and_the_rest_is_read(cast: Cast) -> None:
    open_contract(cast, rules=HOLD)
    ask(cast, 1)
    now = timezone.now()
    with every_tenant():
        row = EnforcementDecision.objects.get()
        for hours in (1, 3, 3, 30):
            hours_ago(row, hours, "needs_approval")
        before = intake_by_verdict(at=now)
        while minutes_count(at=now):
            pass
        counted = {one.minute for one in IntakeMinute.objects.all()}
        after = intake_by_verdict(at=now)
        assert minutes_count(at=now) == 0
    assert before.totals == after.totals == {"allow": 0, "needs_approval": 4, "deny": 0}
    assert before.hours == after.hours
    assert len(after.hours) == 24
    assert counted
    assert all(minute.second == 0 for minute in counted)
    with tenant_scope([cast.other.id]):
        assert sum(intake_by_verdict(at=now).totals.values()) == 0


@pytest.mark.tampers
def test_counted_minutes_end_after_some_days(cast: Cast) -> None:
    open_contract(cast, rules=HOLD)
    ask(cast, 1)
    with every_tenant():
        hours_ago(EnforcementDecision.objects.get(), 2, "needs_approval")
        minutes_count(at=timezone.now())
        assert IntakeMinute.objects.count() == 1
        old = IntakeMinute.objects.get()
        hours_ago(EnforcementDecision.objects.order_by("id").first(), 1, "needs_approval")
        IntakeMinute.objects.filter(id=old.id).update(minute=datetime(2020, 1, 1, tzinfo=UTC))
        minutes_count(at=timezone.now())
        assert not IntakeMinute.objects.filter(id=old.id).exists()


def test_the_overview_costs_the_same_with_more_to_show(cast: Cast) -> None:
    open_contract(cast, rules=HOLD)
    console = cast.console(cast.operator)

    def queries() -> int:
        with CaptureQueriesContext(connection) as found:
            assert console.get(FIGURES).status_code == 200
        for query in found.captured_queries:
            bounded = "LIMIT" in query["sql"] or "COUNT(*)" not in query["sql"]
            assert bounded, query["sql"]
        return len(found.captured_queries)

    queries()
    few = queries()
    for number in range(6):
        ask(cast, number)
    assert queries() == few
