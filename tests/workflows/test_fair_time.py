"""A step's time begins when its request is published, and what Holdpoint lost itself counts against nobody."""

from datetime import datetime, timedelta

import pytest

from governance.outages.models import ClockBeat, OutageInterval
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.workflows.world import World, ago, brief, check_record, people
from workflows.runs.models import WorkflowInstance, WorkflowStep
from workflows.runs.services.replay import instance_replay

pytestmark = pytest.mark.django_db
SECOND = timedelta(seconds=1)


def outage(began: datetime, seconds: float) -> OutageInterval:
    found = OutageInterval(began_at=began, ended_at=began + timedelta(seconds=seconds))
    found.save()
    return found


def only_step(instance: WorkflowInstance) -> WorkflowStep:
    with every_tenant():
        return WorkflowStep.objects.get(instance=instance)


def test_a_step_whose_request_is_not_published_does_not_time_out(cast: Cast) -> None:
    world = World(cast, brief(timeout_seconds=60))
    instance = world.start(at=ago(600))
    before = ago(0)
    assert world.tick("steps_time_out", published=False) == 1
    step = only_step(instance)
    assert (world.fresh(instance).state, step.state) == ("running", "in_progress")
    assert step.timeout_at is not None
    assert step.timeout_at >= before + 60 * SECOND
    assert world.log(instance)[-1] == ("instance.postponed", "advanced")
    assert world.tick("steps_time_out", published=False) == 0, "it is asked again when its time may be over, not before"
    check_record(world, instance)


def test_its_time_counts_from_publication_to_the_second(cast: Cast) -> None:
    world = World(cast, brief(timeout_seconds=60))
    began = ago(600)
    over = world.start(at=began)
    world.published(at=(late := ago(100)))
    assert world.tick("steps_time_out") == 1
    assert world.halted(over) == "step_timed_out"
    assert only_step(over).completed_at == late + 60 * SECOND
    check_record(world, over)


def test_a_request_that_was_published_late_has_its_whole_time(cast: Cast) -> None:
    world = World(cast, brief(timeout_seconds=60))
    instance = world.start(at=ago(600))
    world.published(at=(late := ago(20)))
    assert world.tick("steps_time_out") == 1
    step = only_step(instance)
    assert (step.state, step.timeout_at) == ("in_progress", late + 60 * SECOND)
    world.complete(instance)
    assert world.fresh(instance).state == "completed"
    check_record(world, instance)


@pytest.mark.tampers
def test_an_outage_of_ours_postpones_a_steps_timeout_by_its_length_and_once(cast: Cast) -> None:
    world = World(cast, brief(timeout_seconds=60))
    began = ago(100)
    instance = world.start(at=began)
    outage(began + 30 * SECOND, 60)
    assert world.tick("steps_time_out") == 1
    assert only_step(instance).timeout_at == began + 120 * SECOND
    assert world.fresh(instance).state == "running"
    check_record(world, instance)
    with every_tenant():  # as if the moment to ask had come again
        WorkflowStep.objects.filter(instance=instance).update(timeout_at=began + 90 * SECOND)
    world.tick("steps_time_out")
    assert only_step(instance).timeout_at == began + 120 * SECOND, "an outage counts once, however often it is asked"


def test_the_event_time_of_a_timeout_is_the_fair_deadline_and_not_the_tick(cast: Cast) -> None:
    world = World(cast, brief(timeout_seconds=60))
    began = ago(600)
    instance = world.start(at=began)
    outage(began + 30 * SECOND, 100)
    world.tick("steps_time_out")
    assert world.halted(instance) == "step_timed_out"
    assert only_step(instance).completed_at == began + 160 * SECOND
    check_record(world, instance)


def test_while_no_heartbeat_comes_nothing_times_out(cast: Cast) -> None:
    world = World(cast, brief(timeout_seconds=60))
    began = ago(100)
    instance = world.start(at=began)
    ClockBeat.objects.create(at=began + 30 * SECOND)
    world.tick("steps_time_out")
    assert world.fresh(instance).state == "running"
    check_record(world, instance)


@pytest.mark.parametrize("document", [brief(), people()])
def test_an_outage_postpones_the_deadline_of_the_run_and_replay_agrees(cast: Cast, document: dict[str, object]) -> None:
    world = World(cast, document | {"workflow_timeout_seconds": 500})
    began = ago(600)
    instance = world.start(at=began)
    outage(began + 100 * SECOND, 200)
    assert world.tick("deadlines_pass") == 1
    assert (world.fresh(instance).state, world.fresh(instance).deadline_at) == (instance.state, began + 700 * SECOND)
    assert world.log(instance)[-1] == ("instance.postponed", "advanced")
    with every_tenant():
        assert instance_replay(instance=world.fresh(instance)).differences == []
    assert world.tick("deadlines_pass") == 0


def test_a_run_whose_time_is_over_in_spite_of_the_outage_ends_at_its_fair_deadline(cast: Cast) -> None:
    world = World(cast, brief() | {"workflow_timeout_seconds": 500})
    began = ago(900)
    instance = world.start(at=began)
    outage(began + 100 * SECOND, 200)
    world.tick("deadlines_pass")
    assert world.halted(instance) == "workflow_deadline_passed"
    assert only_step(instance).completed_at == began + 700 * SECOND
    check_record(world, instance)


def test_what_answers_a_step_is_never_recorded_before_it(cast: Cast) -> None:
    world = World(cast, brief())
    instance = world.start(at=(began := ago(10)))
    world.complete(instance, at=began - 8 * SECOND)  # a web server whose clock is eight seconds behind
    step = WorkflowStep.objects.filter(instance=instance).order_by("number")
    with every_tenant():
        assert [(one.started_at, one.completed_at) for one in step] == [(began, began)] * 2
    assert world.fresh(instance).completed_at == began
    check_record(world, instance)
