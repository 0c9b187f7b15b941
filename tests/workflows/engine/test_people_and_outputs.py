"""A person's judgement, what people do to runs, outputs that break their contract, conditions nobody can decide."""

import pytest

from tests.workflows.engine.support import COMPLETIONS, Driven, check_end, definition, step
from workflows.engine.effects import EndReview, OpenReview
from workflows.engine.inputs import Started, TimedOut
from workflows.engine.interventions import LEGAL
from workflows.runs.states import InterventionAction

pytestmark = pytest.mark.unit


def case(**changes: object) -> Driven:
    steps = {
        "ai": step("run_ai_review", {"on_complete": "low", "on_failure": "stop"}),
        "low": step("condition", {"on_true": "people", "on_false": "done"}, params={"expr": "ai.confidence < 0.7"}),
        "people": step("request_human_review", "done", **changes),
        "done": step("emit_final", "TERMINAL"),
        "stop": step("halt", params={"reason_code": "ai_review_failed"}),
    }
    driven = Driven(definition(steps))
    driven.start()
    return driven


def at_people(**changes: object) -> Driven:
    driven = case(**changes)
    driven.complete()
    return driven


@pytest.mark.parametrize("decision", ["confirm", "override"])
def test_a_person_decides_in_our_own_queue_and_nothing_is_asked_of_a_module(decision: str) -> None:
    driven = at_people()
    assert (driven.status, driven.here.state) == ("waiting_approval", "waiting_approval")
    opened = [one for one in driven.effects if isinstance(one, OpenReview)]
    assert [(one.step, one.tier) for one in opened] == [(driven.here.id, "customer_clinician")]
    driven.complete(decision=decision)
    assert (driven.status, driven.state.context["people"]["decision"]) == ("completed", decision)
    assert "human_review.requested" not in driven.sent()
    check_end(driven)


@pytest.mark.parametrize("name", ["human_review.completed", "human_review.failed"])
def test_no_module_can_answer_for_the_person(name: str) -> None:
    driven = at_people()
    payload = COMPLETIONS["request_human_review"]
    if name.endswith("failed"):
        payload = {"reason_code": "image_quality", "retryable": False}
    forged = driven.report(name, payload)
    assert (forged.outcome, forged.drift, driven.status) == ("drift", "unrequested_completion", "waiting_approval")


def test_with_a_module_it_is_asked_and_no_person_of_ours_can_answer_for_it() -> None:
    driven = at_people(params={"module": True})
    assert (driven.status, driven.sent()[-1]) == ("running", "human_review.requested")
    forged = driven.report("human_review.completed", COMPLETIONS["request_human_review"], by_person=True)
    assert (forged.outcome, driven.status) == ("stale", "running")
    driven.complete()
    assert driven.status == "completed"


def test_nobody_decides_in_time_the_review_ends_with_the_step() -> None:
    driven = at_people()
    driven.time_out()
    assert (driven.state.halt_reason, driven.tries("people")) == ("step_timed_out", ["timed_out"])
    assert any(isinstance(one, EndReview) for one in driven.effects)
    check_end(driven)


@pytest.mark.parametrize("payload", [None, {"value": 11}], ids=["does not fit its event", "does not fit its output"])
def test_an_output_that_breaks_its_contract_halts_and_is_not_kept_whatever_on_failure_says(payload: object) -> None:
    steps = {
        "work": step("call_once", {"on_complete": "done", "on_failure": "done"}),
        "done": step("emit_final", "TERMINAL"),
    }
    driven = Driven(definition(steps))
    driven.start()
    driven.report("call_once.completed", payload)
    assert (driven.status, driven.state.halt_reason) == ("halted", "output_contract_drift")
    assert "work" not in driven.state.context
    assert driven.settled() == [("work", "failed")]
    check_end(driven)


def test_a_failure_report_that_breaks_its_contract_is_drift_too() -> None:
    driven = case()
    driven.report("ai_review.failed", None)
    assert (driven.status, driven.state.halt_reason, driven.state.halt_step_id) == (
        "halted", "output_contract_drift", "ai",
    )  # fmt: skip


@pytest.mark.parametrize("expr", ["nowhere.at_all < 1", "case_id < 1"])
def test_a_condition_that_cannot_be_decided_halts_at_the_condition_and_takes_no_branch(expr: str) -> None:
    steps = {"branch": step("condition", "done", params={"expr": expr}), "done": step("emit_final", "TERMINAL")}
    driven = Driven(definition(steps))
    driven.start()
    assert (driven.status, driven.state.halt_reason, driven.state.halt_step_id) == (
        "halted", "condition_failed", "branch",
    )  # fmt: skip
    check_end(driven)


def test_a_halt_really_stops_what_comes_back_is_late_and_a_person_goes_on_with_a_new_try() -> None:
    driven = case()
    asked = driven.here.id
    driven.intervene("halt")
    assert (driven.status, driven.state.halt_reason, driven.tries("ai")) == (
        "halted", "planned_maintenance", ["cancelled"],
    )  # fmt: skip
    late = driven.report("ai_review.completed", COMPLETIONS["run_ai_review"], correlation_id=asked)
    assert (late.outcome, driven.status) == ("late", "halted")
    driven.intervene("resume")
    assert (driven.status, driven.here.attempt) == ("running", 2)
    stale = driven.report("ai_review.completed", COMPLETIONS["run_ai_review"], correlation_id=asked)
    assert (stale.outcome, driven.here.attempt) == ("stale", 2)
    assert driven.settled() == [("ai", "unknown")]
    check_end(driven)


@pytest.mark.parametrize("action", ["cancel", "supersede"])
@pytest.mark.parametrize("moment", ["queued", "running", "waiting_approval", "halted"])
def test_what_is_cancelled_is_over_from_every_state_that_is_not(action: str, moment: str) -> None:
    driven = Driven(case().definition)
    if moment != "queued":
        driven.start()
    if moment == "waiting_approval":
        driven.complete()
    if moment == "halted":
        driven.time_out()
    assert driven.status == moment
    driven.intervene(action)
    assert driven.status == "cancelled"
    assert driven.deadline().outcome == "stale"
    assert driven.tell(Started(driven.now)).outcome == "stale"
    check_end(driven)


def test_a_run_that_was_halted_in_the_queue_begins_when_it_is_resumed() -> None:
    driven = Driven(case().definition)
    driven.intervene("halt")
    assert (driven.status, driven.state.halt_step_id) == ("halted", "ai")
    assert driven.start().outcome == "stale"
    driven.intervene("resume")
    assert (driven.status, driven.here.step_id) == ("running", "ai")
    assert driven.emitted() == ["workflow.halted", "workflow.started"]


def test_after_a_halt_step_resuming_asks_again_what_led_to_it() -> None:
    steps = {
        "consent": step("gate_on_consent", {"on_pass": "done", "on_fail": "stop"}),
        "done": step("emit_final", "TERMINAL"),
        "stop": step("halt"),
    }
    driven = Driven(definition(steps))
    driven.start()
    driven.complete(granted=False)
    assert (driven.status, driven.state.halt_reason) == ("halted", "consent_missing")
    driven.intervene("resume")
    assert (driven.here.step_id, driven.here.attempt, driven.tries("stop")) == ("consent", 2, ["skipped"])
    driven.complete(granted=False)  # still not there: it halts once more
    assert (driven.status, driven.tries("stop")) == ("halted", ["skipped", "completed"])
    driven.intervene("retry_step")
    driven.complete()
    assert driven.status == "completed"
    assert driven.emitted().count("workflow.halted") == 2
    check_end(driven)


@pytest.mark.parametrize("first", ["time_out", "deadline"])
def test_when_a_steps_time_and_the_workflows_end_together_it_does_not_matter_which_tick_comes_first(first: str) -> None:
    steps = {"ai": step("run_ai_review", "done", timeout_seconds=100), "done": step("emit_final", "TERMINAL")}
    driven = Driven(definition(steps, seconds=100))
    driven.start()
    assert driven.here.timeout_at == driven.state.deadline_at
    getattr(driven, first)()
    assert (driven.state.halt_reason, driven.tries("ai")) == ("workflow_deadline_passed", ["cancelled"])


def test_the_time_of_an_earlier_step_does_not_end_the_one_that_is_under_way() -> None:
    driven = at_people()
    late = driven.tell(TimedOut(driven.here.timeout_at, driven.state.steps[0].id))
    assert (late.outcome, driven.status) == ("stale", "waiting_approval")


def test_a_steps_time_never_ends_after_the_workflows() -> None:
    steps = {"ai": step("run_ai_review", "done"), "done": step("emit_final", "TERMINAL")}
    driven = Driven(definition(steps, seconds=100))
    driven.start()
    assert driven.here.timeout_at == driven.state.deadline_at


def test_every_intervention_is_one_that_the_engine_knows() -> None:
    assert set(LEGAL) == set(InterventionAction)
