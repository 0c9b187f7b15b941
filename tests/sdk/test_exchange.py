"""The client's core without input or output: whatever is heard, the same bytes go out, in order and in time."""

import json
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from itertools import cycle, islice

import pytest
from holdpoint_client.errors import StillWaiting, Unreachable
from holdpoint_client.exchange import (
    SHORTEST,
    Call,
    Done,
    Exchange,
    GaveUp,
    Lost,
    Pause,
    Repeat,
    Reply,
    passes,
    reply_of,
)
from holdpoint_client.problem import problem_parse
from holdpoint_client.results import Attempt
from holdpoint_client.retry import RetryPolicy, retry_after
from holdpoint_client.waiting import Waiting
from hypothesis import given
from hypothesis import strategies as st

from tests.properties import examples

pytestmark = pytest.mark.unit
NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
PROBLEM = {"content-type": "application/problem+json"}


def problem(status: int, code: str) -> Reply:
    body = json.dumps({"type": f"https://holdpoint.example/problems/{code}", "status": status}).encode()
    return Reply(status, PROBLEM, body)


def post(repeat: Repeat) -> Call:
    return Call(method="POST", path="/x", headers=(("Idempotency-Key", "k-1"),), body=b"{}", repeat=repeat)


seconds = st.floats(0, 10) | st.floats(0, 1000)
replies = st.builds(
    lambda status, asked, code: Reply(status, PROBLEM, problem(status, code).body, asked),
    st.sampled_from([200, 201, 202, 400, 401, 403, 404, 409, 410, 412, 422, 425, 429, 500, 502, 503, 504]),
    st.none() | seconds,
    st.sampled_from(["idempotency-in-progress", "lease-lost", "record-unavailable", "rate-limited"]),
)
losses = st.builds(Lost, st.just("the connection broke"), st.booleans())
policies = st.builds(
    RetryPolicy,
    deadline=st.floats(0.1, 3) | st.floats(3, 100),
    first=st.floats(0.001, 2),
    longest=st.floats(0.01, 30),
    most_tries=st.integers(1, 20),
)


@given(
    st.sampled_from(Repeat),
    policies,
    st.lists(st.tuples(replies | losses, st.floats(0, 2), st.floats(0, 1)), min_size=1, max_size=6),
)
@examples(150)
def test_whatever_is_heard_key_and_body_stay_the_deadline_holds_and_no_try_follows_a_final_answer(
    repeat: Repeat, policy: RetryPolicy, heard: list[tuple[Reply | Lost, float, float]]
) -> None:
    call = post(repeat)
    now = began = 1000.0
    rolls = cycle(roll for _, _, roll in heard)
    exchange = Exchange(call, policy, now=now, dice=lambda: next(rolls))
    tries, sent = 0, False
    for event, took, _ in islice(cycle(heard), 25):
        send = exchange.send(now=now)
        tries += 1
        assert send.call is call  # the very same bytes: key, body, headers
        assert 0 < send.timeout <= max(SHORTEST, began + policy.deadline - now) + 1e-6
        assert tries <= policy.most_tries
        now += min(took, send.timeout)
        step = exchange.heard(event, now=now)
        sent = sent or (isinstance(event, Lost) and event.sent)
        if isinstance(step, Pause):
            assert step.seconds >= 0
            assert now + step.seconds <= began + policy.deadline
            if isinstance(event, Reply):
                assert passes(event, call)
                assert step.seconds >= (event.asked or 0) - 1e-6
            else:
                assert repeat is Repeat.SAFE or not event.sent
            now += step.seconds
            continue
        if isinstance(step, GaveUp):
            assert isinstance(event, Lost)
            assert isinstance(step.error, Unreachable)
            assert step.error.sent is sent
        else:
            assert isinstance(step, Done)
            assert step.reply is event
        return
    raise AssertionError("it never ended")


@pytest.mark.parametrize(
    ("reply", "safe", "unsent"),
    [
        (problem(409, "idempotency-in-progress"), True, True),
        (problem(409, "lease-lost"), False, False),
        (problem(409, "not-leasable"), False, False),
        (problem(425, "too-early"), True, True),
        (problem(429, "rate-limited"), True, True),
        (problem(503, "record-unavailable"), True, True),
        (Reply(503, {}, b"a proxy's page"), True, False),
        (Reply(502, {}, b""), True, False),
        (Reply(504, {}, b""), True, False),
        (problem(500, "internal-error"), True, False),
        *[(problem(status, "x"), False, False) for status in (400, 401, 403, 404, 408, 410, 412, 413, 415, 422, 501)],
        (Reply(302, {}, b""), False, False),
    ],
)
def test_only_what_the_contract_calls_passing_is_tried_again(reply: Reply, safe: bool, unsent: bool) -> None:
    assert passes(reply, post(Repeat.SAFE)) is safe
    assert passes(reply, post(Repeat.UNSENT)) is unsent


@given(st.integers(0, 10**6))
@examples(30)
def test_a_retry_after_is_read_as_seconds_and_as_a_date_by_the_servers_own_clock(wanted: int) -> None:
    assert retry_after({"retry-after": str(wanted)}, wall=NOW) == wanted
    due = format_datetime(NOW + timedelta(seconds=wanted), usegmt=True)
    assert retry_after({"retry-after": due}, wall=NOW) == wanted
    wrong_here = NOW + timedelta(days=3)
    assert retry_after({"retry-after": due, "date": format_datetime(NOW, usegmt=True)}, wall=wrong_here) == wanted
    assert retry_after({"retry-after": due}, wall=wrong_here) == max(0.0, wanted - 3 * 86400)


@given(st.text(max_size=40))
@examples(60)
def test_an_unreadable_retry_after_is_none_and_never_an_error(text: str) -> None:
    found = retry_after({"retry-after": text}, wall=NOW)
    assert found is None or found >= 0


@given(st.binary(max_size=200), st.sampled_from([200, 403, 500]))
@examples(60)
def test_any_body_is_a_problem_and_never_an_error(body: bytes, status: int) -> None:
    found = problem_parse(status, PROBLEM, body)
    assert (found.status, found.ours) == (status, False)
    assert str(found)


def test_a_servers_time_beyond_the_deadline_is_not_waited_for() -> None:
    exchange = Exchange(post(Repeat.SAFE), RetryPolicy(deadline=5), now=0.0, dice=lambda: 1.0)
    exchange.send(now=0.0)
    step = exchange.heard(Reply(429, PROBLEM, b"{}", 60.0), now=0.1)
    assert isinstance(step, Done)  # and the caller is told when to come back


@pytest.mark.parametrize("roll", [0.0, 0.5, 1.0])
def test_a_pause_is_never_shorter_than_asked_for_nor_longer_than_what_is_left(roll: float) -> None:
    policy = RetryPolicy(deadline=10.0, first=8.0, longest=8.0)
    for asked, least in ((None, 4.0), (7.0, 7.0), (9.5, 9.5)):
        exchange = Exchange(post(Repeat.SAFE), policy, now=0.0, dice=lambda: roll)
        exchange.send(now=0.0)
        step = exchange.heard(Reply(503, PROBLEM, b"{}", asked), now=0.0)
        assert isinstance(step, Pause)
        assert least <= step.seconds <= 10.0 - SHORTEST


def test_header_names_are_found_in_any_case() -> None:
    assert reply_of(429, {"Retry-AFTER": "7"}, b"", wall=NOW).asked == 7.0


@given(st.floats(0.1, 60), st.lists(st.booleans(), min_size=1, max_size=12))
@examples(40)
def test_waiting_never_passes_its_end_and_does_not_hammer_a_server_without_places(
    total: float, slept: list[bool]
) -> None:
    now, looks = 500.0, 0
    waiting = Waiting(until="decision", seconds=total, now=now)
    held = Attempt("a", "review-required", None, None, {})
    for place in islice(cycle(slept), 700):
        asked = waiting.ask(now)
        assert 0 <= asked <= 25
        assert now + asked <= 500.0 + total
        now += asked if place else 0.0
        looks += 1
        try:
            pause = waiting.heard(held, slept=place, now=now)
        except StillWaiting:
            break
        assert pause is not None
        assert 0 < pause <= 500.0 + total - now + 1e-6
        now += pause
    else:
        raise AssertionError("it never ended")
    assert looks <= 20 + total * 10


@pytest.mark.parametrize(
    ("state", "decision", "end"),
    [
        ("review-required", False, False),
        ("approved-for-execution", True, False),
        ("preflight-denied", True, True),
        ("completed", True, True),
        ("failed-quarantined", True, True),
    ],
)
def test_waiting_is_over_at_a_decision_or_at_an_end(state: str, decision: bool, end: bool) -> None:
    attempt = Attempt("a", state, None, None, {})
    for until, over in (("decision", decision), ("end", end)):
        waiting = Waiting(until=until, seconds=10, now=0.0)  # type: ignore[arg-type]
        assert (waiting.heard(attempt, slept=True, now=1.0) is None) is over
