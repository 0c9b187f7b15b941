"""What does not move is found by one statement, named in readiness, and never a reason to take traffic away."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from attempts.reviews.models import Review
from config.stuck import NAMES, PARTS, SQL, Stuck, stuck, stuck_words
from governance.outages.models import OutageInterval
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.execution import support as execution
from tests.attempts.reviews.support import Clinic, set_deadline
from tests.cast import Cast
from tests.plans import only_these_indexes
from tests.workflows.world import World, ago, brief
from workflows.events.models import OutboxEvent
from workflows.runs.models import WorkflowInstance, WorkflowStep

pytestmark = pytest.mark.django_db
LONG_AGO = timedelta(minutes=5)


def found(**kwargs: Any) -> dict[str, int]:
    return {name: one.count for name, one in stuck(at=timezone.now(), **kwargs).items() if one.count}


def test_nothing_there_is_nothing_stuck_and_every_kind_is_named() -> None:
    assert stuck(at=timezone.now()) == dict.fromkeys(NAMES, Stuck(0, 0.0))
    assert list(NAMES) == ["runs", "attempts", "holds", "outbox", "webhooks", "evidence"]


def test_a_step_that_waits_for_its_module_is_not_stuck(cast: Cast) -> None:
    World(cast, brief(timeout_seconds=3000)).start(at=ago(600))
    with every_tenant():
        OutboxEvent.objects.update(status="sent", sent_at=timezone.now())
    assert found() == {}


def test_a_hold_that_waits_for_a_person_is_not_stuck(cast: Cast) -> None:
    Clinic(cast).hold()
    assert found() == {}


def test_an_attempt_that_waits_for_its_executor_is_not_stuck(cast: Cast) -> None:
    execution.contract(cast, adapter="external")
    caller = cast.api("attempts:create")
    attempt_id = execution.asked(caller, connector="external", runtime_mode="client_driven")
    execution.change(attempt_id, "next_eligible_at = clock_timestamp() - interval '5 minutes'")
    assert found() == {}


@pytest.mark.parametrize(
    "change",
    [
        lambda: WorkflowStep.objects.update(timeout_at=ago(300)),
        lambda: WorkflowStep.objects.update(state="pending", timeout_at=None, next_eligible_at=ago(300)),
        lambda: WorkflowInstance.objects.update(deadline_at=ago(300)),
    ],
)
@pytest.mark.tampers
def test_a_run_that_nothing_moves_is_found(cast: Cast, change: Any) -> None:
    World(cast, brief(timeout_seconds=3000)).start(at=ago(10))
    with every_tenant():
        change()
    assert found() == {"runs": 1}
    (words,) = stuck_words(stuck(at=timezone.now()))
    assert words.startswith("1 runs have not moved for longer than they should, the oldest for 300 s")


@pytest.mark.parametrize("column", ["next_eligible_at", "lease_expires_at"])
def test_an_attempt_that_no_worker_takes_or_gives_back_is_found(cast: Cast, column: str) -> None:
    execution.contract(cast)
    attempt_id = execution.asked(cast.api("attempts:create"))
    assert found() == {}
    execution.change(attempt_id, f"{column} = clock_timestamp() - interval '5 minutes'")
    assert found() == {"attempts": 1}


def test_a_hold_that_does_not_end_is_found(cast: Cast) -> None:
    set_deadline(Clinic(cast).hold(), seconds=-300)
    assert found() == {"holds": 1}


def test_a_hold_that_an_outage_keeps_open_is_not_stuck(cast: Cast) -> None:
    held = Clinic(cast).hold()
    set_deadline(held, seconds=-300)
    OutageInterval(began_at=ago(900), ended_at=ago(300)).save()
    assert found() == {}
    with every_tenant():
        assert Review.objects.get().status == "requested"


def test_an_outgoing_event_that_is_not_published_is_found_in_its_organization_only(cast: Cast) -> None:
    world = World(cast, brief())
    world.start(at=ago(300))
    counted = found()
    assert set(counted) == {"outbox"}
    assert found(organizations=[cast.organization.id]) == counted
    assert found(organizations=[uuid4()]) == {}
    assert found(organizations=[]) == {}


def test_readiness_is_degraded_and_not_down(cast: Cast) -> None:
    World(cast, brief()).start(at=ago(300))
    answer = Client().get("/health/ready").json()
    assert answer["stuck"]["outbox"] > 0
    assert [note for note in answer["notes"] if "outbox have not moved" in note]
    assert set(answer["stuck"]) == set(NAMES)


def test_each_part_reads_its_partial_index_and_not_the_table() -> None:
    wanted = {
        "instance_deadline",
        "step_timeout",
        "step_retry_due",
        "nudge_due",
        "attempt_leased",
        "attempt_lines",
        "attempt_queued",
        "review_due",
        "outbox_due",
        "delivery_due",
        "evidence_unfinished",
    }
    assert len(wanted) == len(PARTS)
    only_these_indexes(wanted)
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off; SET LOCAL enable_sort = off")
        cursor.execute("EXPLAIN " + SQL, {"late": timezone.now() - LONG_AGO, "organizations": None})
        plan = "\n".join(row[0] for row in cursor.fetchall())
    missing = [name for name in wanted if f"using {name} " not in plan]
    assert not missing, plan
