"""The hold point's four answers, and answers that nobody asked for."""

from datetime import timedelta

import pytest

from tests.workflows.engine.support import Driven, always, check_end, definition, step

pytestmark = pytest.mark.unit
KINDS_THAT_ASK = ("run_ai_review", "set_case_status", "call_once", "gate_on_consent", "emit_webhook", "emit_final")


def gated(kind: str = "run_ai_review", verdict: str = "allow", **kwargs: object) -> Driven:
    if kind == "emit_final":
        steps = {"work": step(kind, "TERMINAL")}
    else:
        steps = {"work": step(kind, "done"), "done": step("emit_final", "TERMINAL")}
    driven = Driven(definition(steps), say=always(verdict, **kwargs))
    driven.start()
    return driven


@pytest.mark.parametrize("kind", KINDS_THAT_ASK)
def test_what_is_denied_halts_with_the_refusals_reason_and_nothing_goes_out(kind: str) -> None:
    driven = gated(kind, "deny", reason_code="no_rule_matched")
    assert (driven.status, driven.state.halt_reason, driven.sent()) == ("halted", "no_rule_matched", [])
    assert driven.tries("work") == ["failed"]
    check_end(driven)


@pytest.mark.parametrize("kind", ["run_ai_review", "emit_webhook", "emit_final"])
def test_what_is_held_waits_for_a_person_without_a_timeout_and_then_goes_out(kind: str) -> None:
    driven = gated(kind, "hold", reason_code="review_required")
    assert (driven.status, driven.here.state, driven.sent()) == ("waiting_approval", "waiting_approval", [])
    assert driven.here.timeout_at is None
    driven.say = always("allow")
    driven.gate("allow")
    assert len(driven.sent()) >= 1
    if kind == "run_ai_review":
        assert (driven.status, driven.here.timeout_at) == ("running", driven.now + timedelta(seconds=900))
        driven.complete()
    assert driven.status == "completed"
    check_end(driven)


def test_what_is_held_and_refused_halts() -> None:
    driven = gated(verdict="hold", reason_code="review_required")
    driven.gate("deny", "review_rejected")
    assert (driven.status, driven.state.halt_reason, driven.sent()) == ("halted", "review_rejected", [])
    check_end(driven)


def test_a_module_cannot_complete_what_is_still_held() -> None:
    """Correlation ids can be computed by whoever knows the instance: being asked is what counts."""
    driven = gated(verdict="hold", reason_code="review_required")
    forged = driven.report("ai_review.completed", {"confidence": 1, "diagnoses": [], "raw_response_id": "x"})
    assert (forged.outcome, forged.drift) == ("drift", "unrequested_completion")
    assert driven.status == "waiting_approval"


@pytest.mark.parametrize(("retry_after", "seconds"), [(0, 5), (3, 5), (90, 90)])
def test_what_is_put_off_is_asked_for_again_when_it_is_due(retry_after: int, seconds: int) -> None:
    driven = gated(verdict="later", reason_code="rate_limited", retry_after=retry_after)
    assert (driven.status, driven.here.state, driven.sent()) == ("running", "pending", [])
    assert driven.here.next_eligible_at == driven.now + timedelta(seconds=seconds)
    driven.retry_due()
    assert (driven.here.state, driven.here.attempt) == ("pending", 1)  # still too busy; no try was spent on it
    driven.say = always("allow")
    driven.retry_due()
    assert (driven.here.state, driven.here.attempt, driven.here.retries) == ("in_progress", 1, 0)
    driven.complete()
    assert driven.status == "completed"
    check_end(driven)


def test_what_is_put_off_beyond_the_deadline_is_denied() -> None:
    driven = gated(verdict="later", reason_code="rate_limited", retry_after=2_000_000)
    assert (driven.status, driven.state.halt_reason) == ("halted", "rate_limited")


@pytest.mark.parametrize("verdict", ["allow", "hold", "later", "deny"])
def test_an_answer_about_what_is_on_its_way_already_changes_nothing(verdict: str) -> None:
    driven = gated()
    assert driven.gate(verdict).outcome == "stale"
    assert (driven.here.state, driven.sent()) == ("in_progress", ["ai_review.requested"])


@pytest.mark.parametrize("verdict", ["allow", "hold", "later", "deny"])
def test_an_answer_about_an_earlier_try_changes_nothing(verdict: str) -> None:
    driven = gated(verdict="hold", reason_code="review_required")
    first = driven.here.id
    driven.intervene("halt")
    assert driven.gate(verdict, step=first).outcome == "stale"
    driven.intervene("resume")
    assert driven.gate(verdict, step=first).outcome == "stale"
    assert (driven.status, driven.here.attempt) == ("waiting_approval", 2)


@pytest.mark.parametrize("verdict", ["allow", "hold", "later", "deny"])
def test_the_gate_has_no_say_in_a_persons_judgement(verdict: str) -> None:
    steps = {"people": step("request_human_review", "done"), "done": step("emit_final", "TERMINAL")}
    driven = Driven(definition(steps))
    driven.start()
    assert driven.gate(verdict).outcome == "stale"
    assert (driven.status, driven.sent()) == ("waiting_approval", [])


def test_a_denied_retry_takes_back_the_attempt_that_waited_for_it() -> None:
    steps = {"work": step("run_ai_review", "done", max_retries=1), "done": step("emit_final", "TERMINAL")}
    driven = Driven(definition(steps))
    driven.start()
    driven.fail()
    driven.say = always("deny", "contract_suspended")
    driven.retry_due()
    assert (driven.status, driven.state.halt_reason) == ("halted", "contract_suspended")
    assert driven.settled() == [("work", "retry"), ("work", "withdrawn")]
