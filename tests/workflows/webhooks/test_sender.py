"""One sender for many endpoints: one that hangs delays no other, what is new is sent at once, and results are written
together."""

import threading
import time
from collections.abc import Callable, Iterator

import pytest
from django.db import connection, connections
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from reasoncodes.base.ids import uuid7
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.execution.target import CountingTarget
from tests.workflows.webhooks.support import Hooks, deliveries, fresh
from workflows.webhooks.selectors import EndpointRooms, deliveries_due
from workflows.webhooks.services import sender
from workflows.webhooks.services.sender import _sender_slot

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(60)]


@pytest.fixture
def hanging() -> Iterator[list[CountingTarget]]:
    """Receivers that take a request and do not answer until they are released."""
    found = [CountingTarget() for _ in range(3)]
    for one in found:
        one.pause = True
    yield found
    for one in found:
        one.stop()


def until(condition: Callable[[], bool], what: str) -> None:
    ends = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < ends, what
        time.sleep(0.01)


class Sending:
    """A sender in a thread of its own, as in a worker."""

    def __init__(self, hooks: Hooks) -> None:
        self.hooks, self.tries = hooks, 0
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self) -> None:
        try:
            self.tries = self.hooks.send()
        finally:
            connections.close_all()

    def join(self) -> int:
        self.thread.join(30)
        assert not self.thread.is_alive()
        return self.tries


def told(hooks: Hooks, count: int) -> None:
    assert hooks.tell([uuid7() for _ in range(count)])


def test_endpoints_that_hang_delay_no_other_endpoint(hooks: Hooks, hanging: list[CountingTarget]) -> None:
    for one in hanging:
        hooks.hosts |= {one.host}
        hooks.endpoint(url=one.url)
    told(hooks, 10)  # theirs are older than everything below
    good = hooks.endpoint().endpoint
    told(hooks, 50)
    sending = Sending(hooks)
    until(lambda: len(hooks.target.requests) == 50, "the healthy endpoint got everything while the others hang")
    assert all(not one.release.is_set() and len(one.requests) <= 2 for one in hanging)
    until(lambda: {row.state for row in deliveries(endpoint=good)} == {"delivered"}, "and it is written down")
    for one in hanging:
        one.release.set()
    assert sending.join() == 50 + 3 * 60
    assert {row.state for row in deliveries()} == {"delivered"}


def test_what_becomes_due_while_a_sender_waits_for_a_receiver_is_sent_at_once(
    hooks: Hooks, hanging: list[CountingTarget], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sender, "LOOK_SECONDS", 3600.0)
    hooks.hosts |= {hanging[0].host}
    hooks.endpoint("workflow.halted", url=hanging[0].url)
    hooks.endpoint("workflow.started")
    hooks.tell([uuid7()], name="workflow.halted")
    sending = Sending(hooks)
    until(lambda: len(hanging[0].requests) == 1, "it waits")
    hooks.tell([uuid7()], name="workflow.started")
    assert hooks.send() == 0, "the one that runs is woken up instead"
    until(lambda: len(hooks.target.requests) == 1, "sent while the other one still hangs")
    assert not hanging[0].release.is_set()
    hanging[0].release.set()
    assert sending.join() == 2


def test_results_that_come_together_are_written_together(hooks: Hooks) -> None:
    good = hooks.endpoint().endpoint
    told(hooks, 1)
    hooks.send()
    told(hooks, 64)
    with CaptureQueriesContext(connection) as asked:
        assert hooks.send() == 64
    assert {row.state for row in deliveries()} == {"delivered"}
    assert fresh(good).failures == 0
    assert len(asked) < 64 * 3, "one by one it is five statements and a commit for each"


def test_a_healthy_endpoint_after_failures_is_healthy_again_and_both_are_written(hooks: Hooks) -> None:
    made = hooks.endpoint().endpoint
    told(hooks, 1)
    hooks.target.statuses = [500]
    hooks.send()
    assert (fresh(made).failures, fresh(made).succeeded_at) == (1, None)
    assert hooks.send_next() == 1
    again = fresh(made)
    assert (again.failures, again.failing_since, again.held_until) == (0, None, None)
    assert again.succeeded_at is not None


def test_hundreds_of_older_deliveries_to_slow_endpoints_leave_room_for_quick_ones(
    hooks: Hooks, hanging: list[CountingTarget]
) -> None:
    for one in hanging:
        hooks.hosts |= {one.host}
        hooks.endpoint(url=one.url)
    told(hooks, 5)
    good = hooks.endpoint().endpoint
    told(hooks, 5)
    with every_tenant():
        rooms = EndpointRooms(default=2, rooms={good.id: 4}, quick=[good.id])
        due = deliveries_due(at=timezone.now(), most=4, rooms=rooms)
    assert [one.endpoint_id == good.id for one in due].count(True) == 4
    assert len(due) == 8
    assert due == sorted(due, key=lambda one: one.endpoint_id == good.id), "the oldest first"


def test_only_so_many_processes_send_at_the_same_time(hooks: Hooks) -> None:
    found: list[bool] = []

    def other() -> None:
        try:
            with _sender_slot(1) as slot:
                found.append(slot)
        finally:
            connections.close_all()

    with _sender_slot(1) as slot:
        assert slot
        thread = threading.Thread(target=other)
        thread.start()
        thread.join(20)
    other()
    assert found == [False, True]
