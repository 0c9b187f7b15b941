"""An endpoint that hangs delays no other one."""

import threading
import time
from collections.abc import Callable, Iterator

import pytest
from django.db import connection
from django.utils import timezone

from reasoncodes.base.ids import uuid7
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.execution.target import CountingTarget
from tests.cast import Cast
from tests.workflows.webhooks.support import Hooks
from workflows.webhooks.selectors import endpoints_behind

pytestmark = pytest.mark.django_db(transaction=True)
NAME = "case.reviewed"


@pytest.fixture
def hanging() -> Iterator[CountingTarget]:
    found = CountingTarget()
    found.pause = True
    yield found
    found.stop()


@pytest.fixture
def pair(cast: Cast, hanging: CountingTarget) -> Iterator[tuple[Hooks, CountingTarget]]:
    healthy = CountingTarget()
    hooks = Hooks(cast, healthy)
    hooks.hosts = frozenset({healthy.host, hanging.host})
    yield hooks, hanging
    healthy.stop()


def in_thread(work: Callable[[], object]) -> threading.Thread:
    def run() -> None:
        try:
            work()
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def test_a_run_that_waits_for_a_receiver_that_hangs_lets_the_next_one_send(
    pair: tuple[Hooks, CountingTarget],
) -> None:
    hooks, hanging = pair
    hooks.endpoint(NAME, url=hanging.url)
    hooks.tell([uuid7()])
    first = in_thread(lambda: hooks.send(turn=0.3))
    try:
        assert hanging.arrived.wait(10)
        time.sleep(0.5)
        hooks.endpoint(NAME)
        hooks.tell([uuid7() for _ in range(20)])
        with every_tenant():
            behind = endpoints_behind(at=timezone.now())
        assert len(behind) == 2
        sender = in_thread(lambda: hooks.send(turn=3.0))
        ends = time.monotonic() + 10
        while len(hooks.target.requests) < 20:
            assert time.monotonic() < ends, "the healthy endpoint waits for the one that hangs"
            time.sleep(0.02)
        assert first.is_alive(), "it still waits for its receiver"
    finally:
        hanging.release.set()
        first.join(20)
    sender.join(20)
