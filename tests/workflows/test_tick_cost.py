"""What the clock does to runs costs what is due: the same pages are read with a thousand and with a million waiting."""

import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from bench.record import record
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.test_tick_cost import DUE_ROWS, WAITING, copy_rows, cost
from tests.cast import Cast
from tests.workflows.running import REGION, Running
from workflows.events.models import OutboxEvent
from workflows.events.services.outbox import outbox_relay
from workflows.runs.models import WorkflowStep
from workflows.runs.services.clock import deadlines_pass, step_retries_due, steps_time_out
from workflows.runs.services.dispatch import LOOK_AHEAD, instances_dispatch
from workflows.runs.services.start import has_run_slot

PAST = "now() - interval '1 minute'"
STEP, INSTANCE, OUTBOX = "workflows_workflowstep", "workflows_workflowinstance", "workflows_outboxevent"
OUTBOX_COPY = """
INSERT INTO workflows_outboxevent (id, organization_id, instance_id, number, event_type, envelope, status, tries,
    refusals, next_try_at, last_error, created_at)
SELECT gen_random_uuid(), row.organization_id, instance.id, 1, row.event_type, row.envelope, 'pending', 0,
    0, now() + {moment}, '', now()
FROM workflows_outboxevent row, (
    SELECT id, row_number() OVER () n FROM workflows_workflowinstance i WHERE state = %s AND id <> %s
    AND NOT EXISTS (SELECT 1 FROM workflows_outboxevent o WHERE o.instance_id = i.id)
) instance WHERE row.id = %s
"""
TICKS = ("timeouts", "retries", "deadlines", "outbox", "hand_out")


class Crowd:
    """Copies of one run's rows. Numbers go on from `made`, because they are unique within the run."""

    def __init__(self, running: Running) -> None:
        self.instance = running.start()
        step = running.current(self.instance)
        assert step is not None
        self.organization = running.organization
        self.step = step.id
        self.event = running.requests(self.instance)[-1].id
        self.made = 1000
        with every_tenant():  # filling takes longer than the one real step may
            WorkflowStep.objects.filter(id=self.step).update(timeout_at=timezone.now() + timedelta(days=1))
            OutboxEvent.objects.filter(instance=self.instance).update(status="sent")

    def steps(self, count: int, state: str, **moments: str) -> None:
        copy_rows(STEP, self.step, count, state=f"'{state}'", number=f"{self.made} + n", **moments)
        self.made += count

    def instances(self, count: int, state: str, deadline: str) -> None:
        columns = {"case_id": "gen_random_uuid()", "state": f"'{state}'", "deadline_at": deadline}
        copy_rows(INSTANCE, self.instance.id, count, **columns)

    def outbox(self, state: str, moment: str) -> None:
        """One event for each run in this state that has none; within a run a later one would wait for it."""
        with connection.cursor() as cursor:
            cursor.execute(OUTBOX_COPY.format(moment=moment), [state, self.instance.id, self.event])

    def due(self) -> None:
        self.steps(DUE_ROWS, "in_progress", timeout_at=PAST)
        self.steps(DUE_ROWS, "pending", timeout_at="NULL", next_eligible_at=PAST)
        self.instances(DUE_ROWS, "running", PAST)
        self.outbox("running", "interval '-1 minute'")

    def waiting(self, count: int) -> None:
        later = f"now() + interval '1 day' + ({self.made} + n) * interval '1 second'"
        self.steps(count, "in_progress", timeout_at=later)
        self.steps(count, "pending", timeout_at="NULL", next_eligible_at=later)
        self.instances(count, "queued", later)
        self.instances(count, "waiting_approval", later)
        self.outbox("waiting_approval", "interval '1 day' + n * interval '1 second'")


class Seen(Exception):
    """The statement that was looked for."""


def first_look(tick: Callable[[], Any]) -> tuple[str, Any]:
    """The statement by which a tick finds its rows, caught before anything is done with them."""

    def stop(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if not sql.lstrip().startswith(("SELECT", "WITH")):
            return execute(sql, params, many, context)
        raise Seen(sql, params)

    with connection.execute_wrapper(stop), pytest.raises(Seen) as seen:
        tick()
    sql, params = seen.value.args
    return sql, params


def costs(crowd: Crowd) -> dict[str, Any]:
    with connection.cursor() as cursor:
        cursor.execute(f"ANALYZE {STEP}, {INSTANCE}, {OUTBOX}")
    now = timezone.now()
    ticks: dict[str, Callable[[], Any]] = {
        "timeouts": lambda: steps_time_out(at=now, region=REGION),
        "retries": lambda: step_retries_due(at=now, region=REGION),
        "deadlines": lambda: deadlines_pass(at=now, region=REGION),
        "outbox": lambda: outbox_relay(at=now),
        "hand_out": lambda: instances_dispatch(at=now, region=REGION),
        "room": lambda: has_run_slot(organization=crowd.organization),
    }
    return {name: cost(*first_look(tick)) for name, tick in ticks.items()}


@pytest.mark.soak
@pytest.mark.tampers
@pytest.mark.timeout(3600)
def test_ticks_of_runs_read_the_same_with_a_thousand_and_a_million_waiting(cast: Cast) -> None:
    running = Running(cast)
    crowd, found, made = Crowd(running), dict[str, dict[str, Any]](), 0
    with every_tenant():
        crowd.due()
        for total in WAITING:
            began = time.monotonic()
            crowd.waiting(total - made)
            made = total
            found[f"{total}"] = {"filled_s": round(time.monotonic() - began, 1), **costs(crowd)}
    record(name="soak tick cost of runs", figures=found)
    few, many = (found[f"{total}"] for total in WAITING)
    for tick in TICKS:
        expected = LOOK_AHEAD if tick == "hand_out" else DUE_ROWS
        assert few[tick]["rows"] == many[tick]["rows"] == expected, (tick, found)
        # The relay looks into an index for each due row; over a million rows that is up to three pages deeper.
        deeper = 3 * DUE_ROWS if tick == "outbox" else few[tick]["pages"]
        assert many[tick]["pages"] <= few[tick]["pages"] + deeper + 20, (tick, found)
    assert many["room"]["pages"] <= few["room"]["pages"] * 2 + 20, found
