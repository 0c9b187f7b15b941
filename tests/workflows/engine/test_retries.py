"""When a step is tried again, and when it is not: S3 6, S4 8.2, law 4."""

from datetime import timedelta

import pytest

from tests.workflows.engine.support import Driven, check_end, definition, step
from workflows.engine.core import step_backoff

pytestmark = pytest.mark.unit


def retrying(kind: str = "run_ai_review", *, seconds: int = 1_000_000, **fields: object) -> Driven:
    fields = {"max_retries": 4, "retry_delay_seconds": 5} | fields
    targets = {"on_complete": "done", "on_failure": "stop"}
    steps = {
        "work": step(kind, targets, **fields),
        "done": step("emit_final", "TERMINAL"),
        "stop": step("halt", params={"reason_code": "ai_review_failed"}),
    }
    driven = Driven(definition(steps, seconds=seconds))
    driven.start()
    return driven


def waits(driven: Driven) -> list[float]:
    """Seconds from each failure to the try after it, until there is no other."""
    found = []
    while driven.status == "running":
        driven.fail()
        if driven.status == "running":
            due = driven.here.next_eligible_at
            assert due is not None
            found.append((due - driven.now).total_seconds())
            driven.retry_due()
    return found


@pytest.mark.parametrize(
    ("fields", "seconds"),
    [
        ({"retry_backoff": "exponential"}, [5, 30, 120, 600]),
        ({"retry_backoff": "linear"}, [5, 10, 15, 20]),
        ({"retry_backoff": "fixed"}, [5, 5, 5, 5]),
        ({"retry_backoff": "exponential", "retry_delay_seconds": 10}, [10, 60, 240, 1200]),
        ({"retry_backoff": "exponential", "max_retries": 6}, [5, 30, 120, 600, 600, 600]),
        ({"max_retries": 1}, [5]),
        ({"max_retries": 0}, []),
    ],
)
def test_each_retry_waits_as_its_backoff_says_and_after_the_last_the_failure_is_final(
    fields: dict[str, object], seconds: list[float]
) -> None:
    driven = retrying(**fields)
    assert waits(driven) == seconds
    assert (driven.status, driven.state.halt_reason) == ("halted", "ai_review_failed")
    assert driven.tries("work") == ["failed"] * (len(seconds) + 1)
    assert driven.sent() == ["ai_review.requested"] * (len(seconds) + 1)
    assert driven.settled() == [("work", "retry")] * len(seconds) + [("work", "failed")]
    check_end(driven)


@pytest.mark.parametrize("kind", ["exponential", "linear", "fixed"])
def test_a_wait_is_never_shorter_than_the_one_before(kind: str) -> None:
    waited = [step_backoff(kind=kind, delay_seconds=3, retry=number) for number in range(1, 11)]
    assert waited == sorted(waited)
    assert waited[0] == timedelta(seconds=3)


def test_a_retry_that_would_come_after_the_deadline_is_not_promised() -> None:
    driven = retrying(seconds=40)
    assert waits(driven) == [5, 30]  # the third would be due at 155
    assert (driven.status, driven.state.halt_reason) == ("halted", "ai_review_failed")


def test_a_retry_succeeds_and_the_run_goes_on_under_the_new_correlation_id() -> None:
    driven = retrying()
    first = driven.here.id
    driven.fail()
    assert (driven.here.state, driven.here.attempt, driven.here.retries) == ("pending", 2, 1)
    assert driven.here.id != first
    driven.retry_due()
    stale = driven.report("ai_review.completed", {}, correlation_id=first)
    assert (stale.outcome, driven.status) == ("stale", "running")
    driven.complete()
    assert driven.status == "completed"
    assert driven.settled() == [("work", "retry"), ("work", "succeeded"), ("done", "succeeded")]
    check_end(driven)


def test_only_what_the_module_calls_retryable_is_retried() -> None:
    driven = retrying()
    driven.fail(retryable=False)
    assert (driven.status, driven.tries("work")) == ("halted", ["failed"])


def test_a_contract_may_forbid_what_the_definition_asks_for() -> None:
    driven = retrying()
    driven.fail(retries_allowed=False)
    assert (driven.status, driven.tries("work")) == ("halted", ["failed"])


def test_effect_once_is_never_retried_by_itself_whatever_the_definition_and_the_module_say() -> None:
    driven = retrying("call_once")
    driven.fail(retryable=True)
    assert (driven.status, driven.sent()) == ("halted", ["call_once.requested"])
    driven.intervene("resume")  # a person may
    assert driven.sent() == ["call_once.requested"] * 2


def test_a_timeout_is_never_retried_whatever_the_effect() -> None:
    driven = retrying("call_check")
    driven.time_out()
    assert (driven.status, driven.state.halt_reason, driven.tries("work")) == (
        "halted",
        "step_timed_out",
        ["timed_out"],
    )


def test_automatic_retries_begin_anew_after_a_person_has_started_the_step_again() -> None:
    driven = retrying(max_retries=1)
    assert waits(driven) == [5]
    driven.intervene("retry_step")
    assert (driven.here.attempt, driven.here.retries) == (3, 0)
    assert waits(driven) == [5]
    check_end(driven)


def test_a_person_can_have_the_retry_now() -> None:
    driven = retrying(retry_delay_seconds=400)
    driven.fail()
    driven.intervene("retry_step")
    assert (driven.here.state, driven.here.attempt) == ("in_progress", 2)
    assert driven.sent() == ["ai_review.requested"] * 2


def test_a_retry_is_not_taken_up_before_it_is_due_and_only_once() -> None:
    driven = retrying()
    driven.fail()
    waiting = driven.here.id
    assert driven.tell_retry(waiting).outcome == "stale"
    driven.retry_due()
    assert driven.tell_retry(waiting, after=3600).outcome == "stale"
    assert driven.sent() == ["ai_review.requested"] * 2


def test_nothing_can_be_completed_while_nothing_is_under_way() -> None:
    driven = retrying()
    driven.fail()
    early = driven.complete()
    assert (early.outcome, early.drift, driven.status) == ("drift", "unrequested_completion", "running")


def test_a_failure_that_the_definition_has_an_answer_to_leads_there_and_is_no_failure_of_the_run() -> None:
    steps = {
        "work": step("run_ai_review", {"on_complete": "done", "on_failure": "people"}),
        "people": step("request_human_review", "done"),
        "done": step("emit_final", "TERMINAL"),
    }
    driven = Driven(definition(steps))
    driven.start()
    driven.fail(retryable=False)
    assert (driven.status, driven.here.step_id) == ("waiting_approval", "people")
    driven.complete()
    assert driven.status == "completed"
    work = driven.state.steps[0]
    assert (work.state, work.outcome, work.error) == ("completed", "on_failure", {"reason_code": "image_quality"})
    assert "work" not in driven.state.context
    check_end(driven)


def test_a_failure_that_leads_to_a_halt_step_halts_with_that_steps_reason() -> None:
    driven = retrying(max_retries=0)
    driven.fail()
    assert (driven.state.halt_reason, driven.state.halt_step_id) == ("ai_review_failed", "stop")
    assert driven.state.resume_step_id == "work"
    assert driven.tries("work") == ["failed"]
    driven.intervene("resume")
    assert (driven.tries("work"), driven.tries("stop")) == (["failed", "in_progress"], ["skipped"])
    driven.complete()
    assert driven.status == "completed"
    check_end(driven)


def test_a_failure_that_nobody_foresaw_halts_with_a_code_of_ours_and_keeps_the_modules_beside_the_step() -> None:
    steps = {
        "people": step("request_human_review", "done", params={"module": True}),
        "done": step("emit_final", "TERMINAL"),
    }
    driven = Driven(definition(steps))
    driven.start()
    driven.fail(retryable=False, code="nobody_ever_heard_of_this")
    assert (driven.status, driven.state.halt_reason) == ("halted", "adapter_failed")
    assert driven.state.steps[0].error == {"reason_code": "nobody_ever_heard_of_this"}
