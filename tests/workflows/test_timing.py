"""What the clock does to runs: it ends things at their deadline, and releases what the record promised."""

from datetime import timedelta
from uuid import uuid4

import pytest
from django.db import connection
from django.utils import timezone
from structlog.testing import capture_logs

from attempts.execution.models import DispatchIntent
from attempts.lifecycle.models import Attempt
from attempts.quarantine.models import QuarantineCase
from attempts.reviews.models import Review
from attempts.reviews.services.clock import reviews_expire
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.plans import only_these_indexes
from tests.workflows.world import World, ago, brief, changed, check_record, people
from workflows.events.models import WorkflowEvent
from workflows.runs.models import Nudge, WorkflowInstance, WorkflowStep
from workflows.runs.services import clock as timing

pytestmark = pytest.mark.django_db


def last_event(instance: WorkflowInstance) -> WorkflowEvent:
    with every_tenant():
        return WorkflowEvent.objects.get(instance=instance, number=WorkflowInstance.objects.get(id=instance.id).events)


def test_a_step_without_an_answer_times_out_at_its_deadline_and_the_workflow_halts(cast: Cast) -> None:
    world = World(cast, brief(timeout_seconds=60))
    began = ago(600)
    instance = world.start(at=began)
    assert world.tick("steps_time_out") == 1
    assert world.halted(instance) == "step_timed_out"
    with every_tenant():
        step = WorkflowStep.objects.get(instance=instance)
        attempt = Attempt.objects.get(id=step.governed_attempt)
        case = QuarantineCase.objects.get(attempt=attempt)
    deadline = began + timedelta(seconds=60)
    assert (step.state, step.completed_at, step.timeout_at) == ("timed_out", deadline, None)
    assert (attempt.state, attempt.reason_code) == ("failed-quarantined", "outcome_unknown")
    assert case.category == "outcome_unknown"
    found = last_event(instance)
    assert (found.event_type, found.source, found.at) == ("step.timed_out", "clock", deadline)
    assert found.received_at > deadline + timedelta(seconds=500)
    entry = world.ledger(instance)[-1]
    assert (entry.action, entry.actor_kind, entry.reason_code) == ("workflow.halted", "clock", "step_timed_out")
    check_record(world, instance)


def test_a_step_is_not_timed_out_before_its_time_nor_twice(cast: Cast) -> None:
    world = World(cast, brief(timeout_seconds=60))
    early, late = world.start(), world.start(at=ago(600))
    assert world.tick("steps_time_out") == 1
    assert world.tick("steps_time_out") == 0
    assert (world.fresh(early).state, world.halted(late)) == ("running", "step_timed_out")
    assert len(world.log(late)) == 2


def test_a_completion_after_the_timeout_is_kept_and_changes_nothing_and_a_person_goes_on(cast: Cast) -> None:
    world = World(cast, brief(timeout_seconds=60))
    instance = world.start(at=ago(600))
    first = world.current(instance)
    world.tick("steps_time_out")
    late = world.complete(instance, of=first.id)
    assert (late.event.outcome, world.halted(instance)) == ("late", "step_timed_out")
    world.intervene(instance, "retry_step")
    second = world.current(instance)
    assert (second.attempt, second.state) == (2, "in_progress")
    assert second.governed_attempt != first.governed_attempt
    stale = world.complete(instance, of=first.id)
    assert (stale.event.outcome, world.fresh(instance).state) == ("stale", "running")
    world.complete(instance)
    assert world.fresh(instance).state == "completed"
    check_record(world, instance)


@pytest.mark.parametrize("status", ["running", "waiting_approval", "queued", "pending"])
def test_the_workflows_deadline_halts_whatever_goes_on(cast: Cast, status: str) -> None:
    document = people() if status == "waiting_approval" else brief(max_retries=1, retry_delay_seconds=300)
    world = World(cast, document | {"workflow_timeout_seconds": 500})
    if status == "queued":
        world.caps(max_concurrency=0)
    began = ago(600)
    instance = world.start(at=began)
    if status == "pending":
        world.fail(instance, at=began + timedelta(seconds=1))
        assert world.current(instance).state == "pending"
    else:
        assert instance.state == status
    assert world.tick("deadlines_pass") == 1
    assert world.tick("deadlines_pass") == 0
    assert world.halted(instance) == "workflow_deadline_passed"
    assert last_event(instance).at == began + timedelta(seconds=500)
    assert world.current(instance) is None
    with every_tenant():
        assert not Review.objects.filter(status="requested").exists()
        assert not Attempt.objects.filter(state="approved-for-execution").exists()
    check_record(world, instance)


@pytest.mark.parametrize("first", ["steps_time_out", "deadlines_pass"])
def test_whichever_tick_comes_first_when_both_times_end_together_the_reason_is_the_same(cast: Cast, first: str) -> None:
    world = World(cast, brief(timeout_seconds=500) | {"workflow_timeout_seconds": 500})
    instance = world.start(at=ago(600))
    for tick in (first, "steps_time_out", "deadlines_pass"):
        world.tick(tick)
    assert world.halted(instance) == "workflow_deadline_passed"
    assert len(world.log(instance)) == 2


def test_a_person_who_does_not_judge_in_time_ends_the_step_whichever_clock_notices_first(cast: Cast) -> None:
    world = World(cast, people(timeout_seconds=60))
    ours, theirs = world.start(at=ago(600)), world.start(at=ago(600))
    with every_tenant():
        assert reviews_expire(at=timezone.now()) == 2
        assert Nudge.objects.count() == 2
    assert world.tick("steps_time_out") == 2  # before the nudges are heard
    assert world.follow() == 2  # what they say has happened already
    for instance in (ours, theirs):
        assert world.halted(instance) == "step_timed_out"
        assert [name for name, outcome in world.log(instance) if outcome == "advanced"][1:] == ["step.timed_out"]
        check_record(world, instance)
    with every_tenant():
        assert not Nudge.objects.exists()


def test_an_expired_review_alone_ends_the_step_at_its_deadline(cast: Cast) -> None:
    world = World(cast, people(timeout_seconds=60))
    began = ago(600)
    instance = world.start(at=began)
    with every_tenant():
        reviews_expire(at=timezone.now())
    assert world.tick("signals_due") == 1  # its doorbell was not heard; the expiry is long past
    assert world.halted(instance) == "step_timed_out"
    assert last_event(instance).at == began + timedelta(seconds=60)


def test_a_due_retry_goes_out_once_whether_tick_or_doorbell_comes_first(cast: Cast) -> None:
    world = World(cast, brief(max_retries=2, retry_backoff="fixed", retry_delay_seconds=5))
    by_tick, by_bell = world.start(at=ago(60)), world.start(at=ago(60))
    for instance in (by_tick, by_bell):
        world.fail(instance, at=ago(50))
    bell = world.current(by_bell).governed_attempt
    world.dispatch(bell)
    assert world.tick("step_retries_due") == 1
    world.dispatch(world.current(by_tick).governed_attempt)
    world.dispatch(bell)
    assert world.tick("step_retries_due") == 0
    for instance in (by_tick, by_bell):
        assert world.sent(instance) == ["ai_review.requested"] * 2
        step = world.current(instance)
        assert (step.attempt, step.state) == (2, "in_progress")
        with every_tenant():
            assert DispatchIntent.objects.filter(attempt_id=step.governed_attempt).count() == 2
        world.complete(instance)
        assert world.fresh(instance).state == "completed"
        check_record(world, instance)


def test_a_retry_that_is_not_due_is_left_alone_by_tick_and_doorbell(cast: Cast) -> None:
    world = World(cast, brief(max_retries=1, retry_delay_seconds=300))
    instance = world.start()
    world.fail(instance)
    world.dispatch(world.current(instance).governed_attempt)
    assert world.tick("step_retries_due") == 0
    assert (world.current(instance).state, len(world.log(instance))) == ("pending", 2)


def test_a_person_can_have_a_waiting_retry_now(cast: Cast) -> None:
    world = World(cast, brief(max_retries=1, retry_delay_seconds=300))
    instance = world.start()
    world.fail(instance)
    world.intervene(instance, "retry_step")
    assert (world.fresh(instance).state, world.current(instance).state) == ("running", "in_progress")
    world.complete(instance)
    assert world.fresh(instance).state == "completed"
    check_record(world, instance)


def test_retries_end_with_the_definitions_number_and_the_attempt_is_set_apart(cast: Cast) -> None:
    world = World(cast, brief(max_retries=1))
    instance = world.start(at=ago(60))
    world.fail(instance, at=ago(50))
    world.tick("step_retries_due")
    world.fail(instance)
    assert world.halted(instance) == "ai_review_failed"
    assert world.steps(instance) == [("ai_review", "failed"), ("ai_review", "failed"), ("stop", "completed")]
    with every_tenant():
        assert Attempt.objects.get().state == "failed-quarantined"
    check_record(world, instance)


def test_a_row_that_cannot_be_handled_does_not_stop_the_tick(cast: Cast) -> None:
    """The first one's attempt is nowhere to be found: nothing can be said about it, and that is what is said."""
    world = World(cast, brief(timeout_seconds=60))
    poisoned, sound = world.start(at=ago(700)), world.start(at=ago(600))
    with every_tenant():
        WorkflowStep.objects.filter(instance=poisoned).update(governed_attempt=uuid4())
    with capture_logs() as logs:
        assert world.tick("steps_time_out") == 1
    assert [one["row_id"] for one in logs if one["event"] == "tick_row_failed"] == [str(world.current(poisoned).id)]
    assert (world.fresh(poisoned).state, world.halted(sound)) == ("running", "step_timed_out")


def test_ticks_read_their_partial_index_and_not_the_table(cast: Cast) -> None:
    expected = {
        timing._due(timing.STEPS, timing.STEP_TIMED_OUT, "timeout_at"): "step_timeout",
        timing._due(timing.STEPS, timing.RETRY_DUE, "next_eligible_at"): "step_retry_due",
        timing._due(timing.INSTANCES, timing.DEADLINE_PASSED, "deadline_at"): "instance_deadline",
        timing.DUE_SIGNALS: "nudge_due",
    }
    only_these_indexes(expected.values())
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off")
        for sql, index in expected.items():
            cursor.execute("EXPLAIN " + sql, [200])
            plan = "\n".join(row[0] for row in cursor.fetchall())
            assert f"using {index} " in plan, plan


def test_nothing_is_due_nothing_is_done(cast: Cast) -> None:
    world = World(cast, changed("ai_with_confidence_escalation"))
    instance = world.start()
    ticks = ("steps_time_out", "step_retries_due", "deadlines_pass", "signals_due", "instances_dispatch")
    assert [world.tick(name, at=timezone.now() + timedelta(days=400)) for name in ticks] == [0] * 5
    assert len(world.log(instance)) == 1
