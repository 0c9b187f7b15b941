"""The simulator between a real Valkey and an HTTP receiver: what it answers, what it leaves alone, what it survives."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command

from governance.outside.valkey import valkey
from sdk.simulator.behaviour import Behaviour
from sdk.simulator.runner import Simulator
from sdk.simulator.streams import PREFIX, Streams
from sdk.simulator.web import Web
from tests.attempts.execution.target import CountingTarget

CONSENT = "consent.check.requested"
STREAM = f"simulator-tests-{uuid4()}"  # beside the real one, which tests in other processes use
OURS, THEIRS = str(uuid4()), str(uuid4())


@pytest.fixture(autouse=True)
def empty_stream() -> Iterator[None]:
    valkey().delete(PREFIX + STREAM)
    yield
    valkey().delete(PREFIX + STREAM)


@pytest.fixture
def target() -> Iterator[CountingTarget]:
    receiver = CountingTarget()
    yield receiver
    receiver.stop()


def ask(*, organization: str = OURS, correlation_id: str = "", **changes: Any) -> dict[str, Any]:
    """A request on the stream, as the outbox puts it there."""
    envelope = {
        "event_id": str(uuid4()),
        "event_type": CONSENT,
        "schema_version": "v1",
        "occurred_at": "2026-11-16T12:00:00Z",
        "correlation_id": correlation_id or str(uuid4()),
        "case_id": str(uuid4()),
        "org_id": organization,
        "product_id": str(uuid4()),
        "payload": {"types": ["ai_analysis"], "patient_id": "pat-1"},
    } | changes
    valkey().xadd(PREFIX + STREAM, {"event_id": envelope["event_id"], "data": json.dumps(envelope)})
    return envelope


def simulator(
    url: str, *, valkey_url: str = "", consumer: str = "one", rate: float = 0.0, **behaviour: Any
) -> Simulator:
    return Simulator(
        behaviour=Behaviour(**({"latency_ms": 1} | behaviour)),
        streams=Streams(url=valkey_url or settings.REDIS_URL, event_types=[STREAM], consumer=consumer, idle_ms=100),
        web=Web(url=url, key="hp_key", timeout=2),
        organizations=frozenset({OURS}),
        rate=rate,
        senders=2,
    )


@contextmanager
def at_work(one: Simulator) -> Iterator[Simulator]:
    stop = threading.Event()
    thread = threading.Thread(target=one.run, args=[stop])
    thread.start()
    try:
        yield one
    finally:
        stop.set()
        thread.join(15)
        assert not thread.is_alive()
        one.web.close()
        one.streams.close()


def until(condition: Callable[[], bool], *, seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def unacknowledged() -> int:
    groups: Any = valkey().xinfo_groups(PREFIX + STREAM)
    return sum(int(group["pending"]) for group in groups)


def all_read() -> bool:
    groups: Any = valkey().xinfo_groups(PREFIX + STREAM)
    return bool(groups) and groups[0]["lag"] == 0 and groups[0]["pending"] == 0


def correlations(target: CountingTarget) -> list[str]:
    return [request["body"]["correlation_id"] for request in target.requests]


def test_a_request_is_answered_under_its_correlation_id_with_the_key_and_acknowledged(target: CountingTarget) -> None:
    with at_work(simulator(f"http://{target.host}")):
        asked = [ask() for _ in range(5)]
        until(lambda: len(target.requests) == 5)
        until(lambda: unacknowledged() == 0)
    assert sorted(correlations(target)) == sorted(one["correlation_id"] for one in asked)
    assert {request["headers"]["Authorization"] for request in target.requests} == {"Bearer hp_key"}
    assert {request["body"]["event_type"] for request in target.requests} == {"consent.check.completed"}


def test_what_was_asked_before_anybody_listened_is_answered_too(target: CountingTarget) -> None:
    asked = ask()
    with at_work(simulator(f"http://{target.host}")):
        until(lambda: correlations(target) == [asked["correlation_id"]])


def test_a_request_that_is_delivered_twice_is_answered_once(target: CountingTarget) -> None:
    asked = ask()
    ask(correlation_id=asked["correlation_id"], event_id=asked["event_id"])
    with at_work(simulator(f"http://{target.host}")):
        last = ask()
        until(lambda: last["correlation_id"] in correlations(target) and all_read())
    assert correlations(target).count(asked["correlation_id"]) == 1


def test_other_organizations_and_unreadable_requests_are_passed_over(target: CountingTarget) -> None:
    ask(organization=THEIRS)
    ask(payload={"types": "all of them"})
    valkey().xadd(PREFIX + STREAM, {"event_id": "1", "data": "{"})
    valkey().xadd(PREFIX + STREAM, {"something": "else"})
    mine = ask()
    with at_work(simulator(f"http://{target.host}")):
        until(lambda: bool(target.requests) and all_read())
    assert correlations(target) == [mine["correlation_id"]]


def test_an_answer_that_is_not_taken_is_sent_again_unchanged(target: CountingTarget) -> None:
    target.statuses = [503, 429, 500]
    with at_work(simulator(f"http://{target.host}")):
        ask()
        until(lambda: len(target.requests) == 4 and all_read())
    assert len({request["raw"] for request in target.requests}) == 1


def test_an_answer_that_is_refused_for_good_is_not_sent_again(target: CountingTarget) -> None:
    target.statuses = [422]
    with at_work(simulator(f"http://{target.host}")):
        ask()
        until(lambda: bool(target.requests) and all_read())
        time.sleep(0.5)
    assert len(target.requests) == 1


def test_what_one_simulator_left_unanswered_is_answered_by_the_next_in_the_same_words(
    target: CountingTarget,
) -> None:
    with at_work(simulator("http://127.0.0.1:1")):
        asked = ask()
        until(lambda: unacknowledged() == 1)
    assert unacknowledged() == 1
    with at_work(simulator(f"http://{target.host}", consumer="two")):
        until(lambda: bool(target.requests) and all_read())
    (first,) = target.requests
    ask(correlation_id=asked["correlation_id"], event_id=asked["event_id"])
    with at_work(simulator(f"http://{target.host}", consumer="three")):  # it remembers nothing
        until(lambda: len(target.requests) == 2)
    assert target.requests[1]["body"]["event_id"] == first["body"]["event_id"]
    assert target.requests[1]["body"]["payload"] == first["body"]["payload"]


def test_a_group_that_was_lost_with_its_stream_is_made_again(target: CountingTarget) -> None:
    with at_work(simulator(f"http://{target.host}")):
        ask()
        until(lambda: len(target.requests) == 1 and all_read())
        valkey().delete(PREFIX + STREAM)
        again = ask()
        until(lambda: again["correlation_id"] in correlations(target))


def test_without_valkey_it_waits_and_ends_when_it_is_told_to() -> None:
    with at_work(simulator("http://127.0.0.1:1", valkey_url="redis://127.0.0.1:1/0")) as waiting:
        until(lambda: waiting.failures >= 3)


def test_the_rate_is_never_exceeded(target: CountingTarget) -> None:
    for _ in range(6):
        ask()
    began = time.monotonic()
    with at_work(simulator(f"http://{target.host}", rate=5)):
        until(lambda: len(target.requests) == 6)
    assert time.monotonic() - began >= 5 * 0.2


def test_the_command_says_what_is_missing_and_what_cannot_be(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CommandError, match="Missing: --url, --key, --organization"):
        call_command("simulate_modules")
    monkeypatch.setenv("HOLDPOINT_MODULES_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("HOLDPOINT_MODULES_KEY", "hp_key")
    with pytest.raises(CommandError, match="Missing: --organization"):
        call_command("simulate_modules")
    monkeypatch.setenv("HOLDPOINT_MODULES_ORGANIZATION", OURS)
    with pytest.raises(CommandError, match="failure_rate must be from 0 to 1"):
        call_command("simulate_modules", "--failure-rate=7")
    with pytest.raises(CommandError, match="no such module: billing"):
        call_command("simulate_modules", "--modules=billing")
    with pytest.raises(CommandError, match="--reviewers needs HOLDPOINT_MODULES_REVIEWER"):
        call_command("simulate_modules", "--reviewers")


def test_the_command_is_refused_where_the_demo_is(settings: Any) -> None:
    settings.DEMO_ALLOWED = False
    with pytest.raises(CommandError, match="refused under production settings"):
        call_command("simulate_modules", "--url=http://127.0.0.1:1", "--key=hp_key", f"--organization={OURS}")
