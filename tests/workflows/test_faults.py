"""Processes killed with -9 in the middle of the engine's work, Valkey gone: nothing is lost, nothing counts twice."""

import signal
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone

from attempts.execution.adapters.event import STREAM, stream_client
from attempts.execution.models import DispatchIntent
from attempts.lifecycle.models import Attempt
from governance.outside.valkey import valkey
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.reviews.support import at_once
from tests.cast import Cast
from tests.governance.support import in_parallel
from tests.processes import ended, start
from tests.workflows.dying import work_and_die
from tests.workflows.world import World, ago, brief, check_record
from workflows.events.models import OutboxEvent
from workflows.events.services.outbox import outbox_relay
from workflows.runs.models import WorkflowInstance

pytestmark = pytest.mark.django_db(transaction=True)
CONSENT = ("consent.check.completed", {"granted": True, "missing_types": []})


def killed(*, crash_at: str = "", **order: Any) -> None:
    """Runs the work in a process of its own until it dies."""
    told = {"work": "event", "moment": ""} | order
    assert ended(start(work_and_die, told, environment={"HOLDPOINT_CRASH_AT": crash_at})) == -signal.SIGKILL


def answer_to(world: World, instance: WorkflowInstance, answer: tuple[str, Any]) -> dict[str, Any]:
    step = world.current(instance)
    return world.envelope(*answer, case_id=instance.case_id, correlation_id=step.id)


def relay() -> int:
    with every_tenant():
        return outbox_relay(at=timezone.now())


def published(instance: WorkflowInstance) -> list[str]:
    """The ids of the instance's events in their streams, in the order of publication, as often as they are there."""
    with every_tenant():
        kinds = list(OutboxEvent.objects.filter(instance=instance).values_list("event_type", flat=True).distinct())
        ours = {str(one) for one in OutboxEvent.objects.filter(instance=instance).values_list("id", flat=True)}
    streams: Any = stream_client()
    entries = [entry for kind in kinds for entry in streams.xrange(STREAM + kind)]
    entries.sort(key=lambda entry: [int(part) for part in entry[0].split("-")])
    return [fields["event_id"] for _, fields in entries if fields["event_id"] in ours]


def in_order(world: World, instance: WorkflowInstance) -> list[str]:
    return [str(row.id) for row in world.requests(instance)]


@contextmanager
def no_valkey(settings: Any) -> Iterator[None]:
    real = settings.REDIS_URL
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    _point_at(settings, f"redis://127.0.0.1:{port}/0")
    try:
        yield
    finally:
        _point_at(settings, real)


def _point_at(settings: Any, url: str) -> None:
    settings.REDIS_URL = url
    stream_client.cache_clear()
    valkey.cache_clear()


@pytest.mark.parametrize(
    ("moment", "crash_at", "duplicate"),
    [("", "after_lease", False), ("before the commit", "", False), ("after the commit", "", True)],
    ids=["in the middle of the hold point", "before the commit", "after the commit, before any doorbell"],
)
def test_an_event_whose_process_was_killed_counts_once_when_it_is_delivered_again(
    cast: Cast, moment: str, crash_at: str, duplicate: bool
) -> None:
    """The completion of a check, after which the engine opens and sends a governed attempt."""
    world = World(cast, "ai_only").ready()
    instance = world.start()
    world.complete(instance)
    step = world.current(instance)
    payload = {"count": 3, "passed": True, "image_ids": []}
    envelope = world.envelope("case.images_check.completed", payload, case_id=instance.case_id, correlation_id=step.id)
    killed(crash_at=crash_at, moment=moment, envelope=envelope, actor=str(world.module.id))
    with every_tenant():
        assert Attempt.objects.count() == DispatchIntent.objects.count() == duplicate
    again = world.send(envelope)
    assert (again.duplicate, again.event.outcome) == (duplicate, "advanced")
    assert world.current(instance).step_id == "ai_review"
    assert world.sent(instance)[-1:] == ["ai_review.requested"]
    with every_tenant():
        assert Attempt.objects.count() == DispatchIntent.objects.count() == 1
    relay()
    assert published(instance) == in_order(world, instance)
    world.complete(instance)
    assert world.fresh(instance).state == "completed"
    check_record(world, instance)


def test_a_tick_that_was_killed_at_its_second_row_leaves_the_rest_to_the_next(cast: Cast) -> None:
    world = World(cast, brief(timeout_seconds=60)).ready()
    late = [world.start(at=ago(600 + number)) for number in range(3)]
    world.published()
    killed(moment="between two")
    assert Counter(world.fresh(one).state for one in late) == {"halted": 1, "running": 2}
    assert world.tick("steps_time_out") == 2
    for instance in late:
        assert world.halted(instance) == "step_timed_out"
        assert len(world.log(instance)) == 2
        check_record(world, instance)


def test_a_relay_that_was_killed_after_publishing_publishes_again_under_the_same_ids_in_the_same_order(
    cast: Cast,
) -> None:
    world = World(cast, "ai_only").ready()
    instance = world.start()
    world.complete(instance)
    killed(work="relay", moment="before the commit")
    rows = in_order(world, instance)
    assert published(instance) == rows
    with every_tenant():
        assert {row.status for row in world.requests(instance)} == {"pending"}
    assert relay() == len(rows) == 3
    assert published(instance) == rows + rows
    assert relay() == 0


def test_without_valkey_events_are_taken_in_and_what_is_to_be_said_is_said_afterwards_in_order(
    cast: Cast, settings: Any
) -> None:
    world = World(cast, "ai_only").ready()
    instance, governed = world.start(), world.start(at=ago(60))
    world.complete(governed, at=ago(50))
    with no_valkey(settings):
        taken = world.send(answer_to(world, instance, CONSENT))
        assert taken.event.outcome == "advanced"
        assert world.sent(instance) == ["consent.check.requested", "case.images_check.requested"]
        world.complete(governed, at=ago(30))  # the throttles cannot be read: the side effect is put off, not sent
        assert (world.fresh(governed).state, world.current(governed).state) == ("running", "pending")
        assert "ai_review.requested" not in world.sent(governed)
        new = world.start()
        assert new.state == "queued"  # nor can it be known whether there is room
        assert relay() == 0
        with every_tenant():
            first = OutboxEvent.objects.get(instance=instance, number=1)
        assert (first.status, first.tries, first.last_error != "") == ("pending", 1, True)
    with every_tenant():
        OutboxEvent.objects.update(next_try_at=timezone.now())  # its wait is over
    assert relay() > 0
    assert published(instance) == in_order(world, instance)
    assert world.tick("step_retries_due") == 1
    assert world.tick("instances_dispatch") == 1
    assert world.sent(governed)[-1] == "ai_review.requested"
    assert world.fresh(new).state == "running"
    assert relay() > 0
    for one in (instance, governed, new):
        assert published(one) == in_order(world, one)
        check_record(world, one)


def test_relays_at_the_same_time_publish_every_row_once_and_keep_each_runs_order(cast: Cast) -> None:
    world = World(cast, "ai_only").ready()
    runs = [world.start() for _ in range(6)]
    for instance in runs:
        world.complete(instance)
    handed: list[Callable[[], int]] = [relay] * 4
    assert sum(at_once(*handed)) + relay() == 18
    for instance in runs:
        assert published(instance) == in_order(world, instance)


def test_what_follows_a_row_that_another_relay_is_busy_with_waits_for_it(cast: Cast) -> None:
    world = World(cast, "ai_only").ready()
    busy, free = world.start(), world.start()
    world.complete(busy)
    taken, done = threading.Event(), threading.Event()

    def hold() -> None:
        with every_tenant(), transaction.atomic():
            assert OutboxEvent.objects.select_for_update().get(instance=busy, number=1)
            taken.set()
            assert done.wait(30)

    def others() -> int:
        assert taken.wait(30)
        try:
            return relay()
        finally:
            done.set()

    _, published_meanwhile = in_parallel(hold, others)
    assert (published_meanwhile, published(busy)) == (2, [])
    assert published(free) == in_order(world, free)
    assert relay() == 3
    assert published(busy) == in_order(world, busy)
