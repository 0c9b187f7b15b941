"""Governed functions and executors: run once with permission, and say honestly how it ended."""

import asyncio
import inspect
import json
import os
import signal
import threading
import time
from typing import Any

import httpx
import pytest
from holdpoint_client import (
    Action,
    AlreadyDone,
    AsyncExecutor,
    AsyncHoldpoint,
    CredentialRefused,
    DeniedError,
    Executor,
    HeldError,
    Holdpoint,
    Lease,
    MemoryKeyStore,
    NotDone,
    OutcomeUnknown,
    RetryPolicy,
    Success,
    TakenElsewhere,
    Unreachable,
    current_lease,
    governed,
)
from holdpoint_client.heart import Pulse

from tests.sdk.stand_in import ID, Say, Server, asked, leased, problem, reported

pytestmark = pytest.mark.unit
QUICK = RetryPolicy(deadline=0.3, first=0.001, longest=0.002)
LOST = problem(409, "lease-lost")
# A second, the shortest that is believed: the heart beats three times in it.
SHORT = {"lease_expires_at": "2026-11-16T12:00:01+00:00"}


def plain(server: Server, body: Any, **terms: Any) -> Any:
    client = Holdpoint("https://hp.example", "hp_k", store=MemoryKeyStore(), retry=QUICK, transport=server.transport)
    with client:
        return governed(client, **TERMS | terms)(lambda case: body())("case-1")


def in_loop(server: Server, body: Any, **terms: Any) -> Any:
    async def main() -> Any:
        transport = httpx.MockTransport(server.answer)
        client = AsyncHoldpoint("https://hp.example", "hp_k", store=MemoryKeyStore(), retry=QUICK, transport=transport)
        async with client:

            async def act(case: str) -> Any:
                found = body()
                return await found if inspect.isawaitable(found) else found

            return await governed(client, **TERMS | terms)(act)("case-1")

    return asyncio.run(main())


TERMS: dict[str, Any] = {
    "contract": "demo",
    "ref": lambda case: f"{case}/close",
    "action": lambda case: Action("case.close", target_ref=case),
}
both = pytest.mark.parametrize("run", [plain, in_loop], ids=["sync", "async"])


def body_of(request: httpx.Request) -> dict[str, Any]:
    return dict(json.loads(request.content))


@both
def test_a_governed_function_asks_leases_runs_and_reports(run: Any) -> None:
    lost = httpx.ReadTimeout("lost")
    server = Server(attempts=asked(), lease=leased(), complete=[lost, httpx.Response(502), reported()])
    report = {"report": lambda result: Success({"reference": result})}
    assert run(server, lambda: current_lease().effect_key, **report) == "effect-1"
    assert [request.url.path.rpartition("/")[2] for request in server.requests] == ["attempts", "lease"] + 3 * [
        "complete"
    ]
    assert len({request.content for request in server.sent("complete")}) == 1  # the same report again
    assert body_of(server.requests[0])["runtime_mode"] == "client_driven"
    assert body_of(server.requests[2])["response_metadata"] == {"reference": "effect-1"}


@both
@pytest.mark.parametrize(
    ("answers", "error"),
    [
        ({"attempts": problem(403, "attempt-denied", attempt_id=ID, reason_code="policy_denied")}, DeniedError),
        ({"attempts": asked("review-required", 202)}, HeldError),
        ({"attempts": asked(**{"Idempotent-Replayed": "true", "Attempt-State": "completed"})}, AlreadyDone),
        ({"attempts": asked(**{"Idempotent-Replayed": "true", "Attempt-State": "failed-quarantined"})}, OutcomeUnknown),
        ({"attempts": asked(), "lease": problem(409, "not-leasable"), "read": asked()}, TakenElsewhere),
        ({"attempts": asked(), "lease": problem(409, "not-leasable"), "read": asked("completed")}, AlreadyDone),
        ({"attempts": asked(), "lease": problem(409, "not-leasable"), "read": asked("preflight-denied")}, DeniedError),
        ({"attempts": asked(), "lease": httpx.ReadTimeout("lost")}, OutcomeUnknown),
        ({"attempts": asked(), "lease": httpx.ConnectError("no")}, Unreachable),
        ({"attempts": httpx.ReadTimeout("lost")}, Unreachable),
    ],
)
def test_without_permission_and_a_lease_in_hand_it_does_not_run(run: Any, answers: dict[str, Say], error: type) -> None:
    ran: list[int] = []
    server = Server(**{"read": asked(), **answers})
    with pytest.raises(error):
        run(server, lambda: ran.append(1))
    assert ran == []
    assert len(server.sent("lease")) <= 1 or error is Unreachable


@both
@pytest.mark.parametrize(
    ("error", "category", "retryable"),
    [
        (NotDone("busy", retryable=True), "adapter_failure", True),
        (NotDone("bad answer", category="invalid_response"), "invalid_response", False),
        (ValueError("anything"), "outcome_unknown", False),
        (KeyboardInterrupt(), "outcome_unknown", False),
    ],
)
def test_an_error_is_reported_for_what_it_is_and_raised(
    run: Any, error: BaseException, category: str, retryable: bool
) -> None:
    server = Server(attempts=asked(), lease=leased(), fail=reported("failed-quarantined"))

    def fails() -> None:
        raise error

    with pytest.raises(type(error)):
        run(server, fails)
    (sent,) = server.sent("fail")
    assert (body_of(sent)["category"], body_of(sent)["retryable"]) == (category, retryable)


@both
@pytest.mark.parametrize("answer", [httpx.ReadTimeout("lost"), LOST, httpx.ConnectError("no")])
def test_what_ran_and_could_not_be_reported_is_unknown_with_its_result(run: Any, answer: Say) -> None:
    server = Server(attempts=asked(), lease=leased(), complete=answer)
    with pytest.raises(OutcomeUnknown) as caught:
        run(server, lambda: "r-1")
    assert (caught.value.ran, caught.value.result) == (True, "r-1")


@both
def test_a_result_that_must_not_enter_the_record_is_reported_as_done_without_it(run: Any) -> None:
    server = Server(attempts=asked(), lease=leased(), complete=[problem(422, "metadata-boundary"), reported()])
    assert run(server, lambda: 1, report=lambda result: Success({"name": "somebody"})) == 1
    assert [body_of(sent)["response_metadata"] for sent in server.sent("complete")] == [{"name": "somebody"}, {}]


@both
def test_a_held_function_waits_for_people_and_then_runs_or_not(run: Any) -> None:
    held, slept = asked("review-required", 202), {"Preference-Applied": "wait=25"}
    waiting = asked("review-required", 200, **slept)
    released = Server(attempts=held, read=[waiting, asked(status=200)], lease=leased(), complete=reported())
    assert run(released, lambda: "ran", wait=30) == "ran"
    rejected = Server(attempts=held, read=[waiting, asked("preflight-denied", 200)])
    with pytest.raises(DeniedError):
        run(rejected, lambda: "ran", wait=30)
    with pytest.raises(HeldError):
        run(Server(attempts=held, read=asked("review-required", 200)), lambda: "ran", wait=0.2)


@pytest.mark.parametrize(
    ("run", "work"), [(plain, lambda: time.sleep(0.5)), (in_loop, lambda: asyncio.sleep(0.5))], ids=["sync", "async"]
)
def test_the_heart_beats_while_the_function_runs_and_has_stopped_before_the_report(run: Any, work: Any) -> None:
    server = Server(
        attempts=asked(), lease=leased(**SHORT), heartbeat=httpx.Response(200, json={}), complete=reported()
    )
    run(server, work)
    assert server.sent("heartbeat")
    assert server.requests[-1].url.path.endswith("/complete")


def test_a_beat_that_is_under_way_is_waited_for_before_the_report() -> None:
    """After the report it would arrive under a lease that is over, and count as a violation."""
    beating, seen = threading.Event(), []

    def slow(request: httpx.Request) -> httpx.Response:
        beating.set()
        time.sleep(0.2)
        beating.clear()
        return httpx.Response(200, json={})

    def done(request: httpx.Request) -> httpx.Response:
        seen.append(beating.is_set())
        return reported()

    server = Server(attempts=asked(), lease=leased(**SHORT), heartbeat=slow, complete=done)
    plain(server, lambda: beating.wait(5))
    assert seen == [False]


def test_silence_for_a_lifetime_is_a_lost_lease_and_a_beat_counts_from_when_it_was_sent() -> None:
    pulse = Pulse(60.0, now=100.0)
    assert pulse.interval == 20.0
    assert not pulse.over(now=159.9)
    assert pulse.over(now=160.0)
    pulse.heard(began=140.0)
    assert not pulse.over(now=199.9)
    assert pulse.over(now=200.0)


def executor(server: Server, handler: Any) -> Executor:
    client = Holdpoint("https://hp.example", "hp_k", retry=QUICK, transport=server.transport)
    return Executor(client, handler, poll=(0.01, 0.02))


def many(*leases: dict[str, Any]) -> httpx.Response:
    return httpx.Response(200, json={"results": list(leases)}, headers={"Date": "Mon, 16 Nov 2026 12:00:00 GMT"})


def test_an_executor_that_loses_its_lease_stops_its_handler_and_says_what_it_knows() -> None:
    """The second beat is refused; the handler looks between its parts and stops."""
    server = Server(
        lease=[many(leased(**SHORT).json()), many()],
        heartbeat=[httpx.Response(200, json={}), LOST],
        fail=LOST,
    )
    seen: list[bool] = []
    lost = threading.Event()

    def handle(lease: Lease) -> None:
        lost.wait(0.05)
        deadline = threading.Event()
        for _ in range(300):
            deadline.wait(0.01)
            seen.append(lease.lost)
            lease.check()

    one = executor(server, handle)
    assert one.run_once() is True
    assert (seen[0], seen[-1], one.done) == (False, True, 0)
    assert len(server.sent("heartbeat")) == 2
    assert body_of(server.sent("fail")[0])["category"] == "outcome_unknown"


def test_an_executor_lives_through_an_outage_and_ends_with_the_first_signal_after_its_work() -> None:
    server = Server(
        lease=[
            httpx.ConnectError("no"),
            problem(503, "record-unavailable", {"Retry-After": "9"}),
            many(leased().json()),
        ],
        complete=reported(),
    )
    handled: list[str] = []

    def handle(lease: Lease) -> dict[str, str]:
        os.kill(os.getpid(), signal.SIGTERM)
        handled.append(lease.attempt.id)
        return {"status": "ok"}

    before = signal.getsignal(signal.SIGTERM)
    one = executor(server, handle)
    one.run()
    assert (handled, one.done) == ([ID], 1)
    assert body_of(server.sent("complete")[0])["response_metadata"] == {"status": "ok"}
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_second_signal_interrupts_the_handler_and_its_outcome_is_unknown() -> None:
    server = Server(lease=many(leased().json()), fail=reported("failed-quarantined"))

    def handle(lease: Lease) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGTERM)
        raise AssertionError("not reached")

    with pytest.raises(KeyboardInterrupt):
        executor(server, handle).run()
    assert body_of(server.sent("fail")[0])["category"] == "outcome_unknown"


def test_an_executor_with_a_wrong_key_says_so_instead_of_waiting() -> None:
    with pytest.raises(CredentialRefused):
        executor(Server(lease=problem(401, "credential-missing")), lambda lease: None).run()


def test_an_async_executor_works_in_parallel_cancels_what_lost_its_lease_and_stops() -> None:
    async def main() -> tuple[int, list[str], Server]:
        both_there, cancelled = asyncio.Event(), []
        other = leased(**SHORT).json()
        server = Server(
            lease=[many(leased().json()), many(other | {"lease_token": "second"}), many()],
            heartbeat=LOST,
            complete=reported(),
            fail=LOST,
        )
        client = AsyncHoldpoint("https://hp.example", "hp_k", retry=QUICK, transport=httpx.MockTransport(server.answer))
        arrived = 0

        async def handle(lease: Lease) -> None:
            nonlocal arrived
            arrived += 1
            if arrived == 2:
                both_there.set()
            await both_there.wait()  # only passes when both run at once
            if lease.token == "second":
                try:
                    await asyncio.sleep(30)
                except asyncio.CancelledError:
                    cancelled.append(lease.token)
                    one.stop()
                    raise

        one = AsyncExecutor(client, handle, concurrency=2, poll=(0.01, 0.02))
        async with client:
            await asyncio.wait_for(one.run(), 10)
        return one.done, cancelled, server

    done, cancelled, server = asyncio.run(main())
    assert (done, cancelled) == (1, ["second"])
    assert body_of(server.sent("fail")[0])["lease_token"] == "second"
