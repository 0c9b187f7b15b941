"""The queue on another server than streams and throttles, with what is installed. Figures: docs/measurements.md."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.record import record
from tests.attempts.execution.target import CountingTarget
from tests.stack.brokers import INSTALLED, Broker
from tests.stack.homes import home_folder, seasoned_stack
from tests.stack.support import wait_for
from tests.stack.test_acceptance import World

# Long, and only where Debian's redis-server or rabbitmq-server is: `make soak`.
pytestmark = [pytest.mark.stack, pytest.mark.soak, pytest.mark.timeout(240)]


@pytest.fixture(params=sorted(INSTALLED) or ["none is installed"])
def broker(request: pytest.FixtureRequest) -> Iterator[Broker | None]:
    if request.param not in INSTALLED:
        yield None
        return
    with home_folder() as folder:
        found = INSTALLED[request.param](folder)
        try:
            found.start()
            yield found
        finally:
            found.remove()


def test_work_passes_through_another_broker_and_goes_on_after_it_was_killed(
    seasoned_home: Path, broker: Broker | None
) -> None:
    variables = {"BROKER_URL": broker.url} if broker else {}
    target = CountingTarget()
    with seasoned_stack(seasoned_home, HOLDPOINT_DEMO_TARGET=target.url, **variables) as stack:
        world = World(stack, target)
        wait_for(lambda: stack.ready().status == 200, seconds=60, what="a heartbeat through the broker")
        began = time.monotonic()
        first = [world.ask("once_http").json()["id"] for _ in range(10)]
        for one in first:
            world.until(one, "completed")
        figures = {"broker": type(broker).__name__, "ten_attempts_s": round(time.monotonic() - began, 1)}
        if broker:
            broker.kill()
            answers = [world.ask("once_http") for _ in range(5)]
            assert {answer.status_code for answer in answers} == {201}, "intake does not need the queue"
            assert stack.ready().body["checks"]["broker"]["status"] == "failing"
            assert stack.ready().body["checks"]["streams"]["status"] == "ok"
            broker.start()
            again = time.monotonic()
            for answer in answers:
                world.until(answer.json()["id"], "completed", seconds=90)
            wait_for(lambda: stack.ready().status == 200, seconds=60, what="ready again")
            figures["drained_after_s"] = round(time.monotonic() - again, 1)
    assert set(target.effects.values()) == {1}
    target.stop()
    record(name="soak another broker", figures=figures)
