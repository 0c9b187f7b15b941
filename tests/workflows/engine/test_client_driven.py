"""The client calls the modules; the engine watches, advances, and says where the order was left (S4 1.4, 5.7)."""

import pytest

from tests.workflows.engine.support import COMPLETIONS, Driven, check_end, definition, step

pytestmark = pytest.mark.unit
AI = COMPLETIONS["run_ai_review"]
CONSENT = COMPLETIONS["gate_on_consent"]
IMAGES = COMPLETIONS["require_images"]


@pytest.fixture
def driven() -> Driven:
    steps = {
        "consent": step("gate_on_consent", {"on_pass": "ai", "on_fail": "stop"}),
        "ai": step("run_ai_review", {"on_complete": "status", "on_failure": "stop"}),
        "status": step("set_case_status", "people"),
        "people": step("request_human_review", "told"),
        "told": step("emit_webhook", "done"),
        "done": step("emit_final", "TERMINAL"),
        "stop": step("halt"),
    }
    found = Driven(definition(steps), "client_driven")
    found.start()
    return found


def test_completions_advance_it_and_nothing_is_ever_requested(driven: Driven) -> None:
    for _ in range(4):
        driven.report(
            {"consent": "consent.check.completed", "ai": "ai_review.completed", "status": "case.set_status.completed",
             "people": "human_review.completed"}[driven.here.step_id],
            COMPLETIONS[driven.here.kind],
            correlation_id=None,  # the client's own, or none
        )  # fmt: skip
    assert driven.status == "completed"
    assert driven.sent() == []
    assert driven.emitted() == ["workflow.started", "workflow.completed"]
    assert driven.state.early == {}
    check_end(driven)


def test_a_completion_behind_a_gate_that_nobody_passed_is_a_skipped_gate_and_used_when_its_turn_comes(
    driven: Driven,
) -> None:
    early = driven.report("ai_review.completed", AI)
    assert (early.outcome, early.drift) == ("drift", "skipped_gate")
    assert (driven.here.step_id, driven.state.early) == ("consent", {"ai_review.completed": AI})
    used = driven.report("consent.check.completed", CONSENT)
    assert (used.outcome, used.drift) == ("advanced", "wrong_order")
    assert (driven.here.step_id, driven.state.early) == ("status", {})
    assert driven.state.context["ai"] == AI
    check_end(driven)


def test_a_completion_further_on_with_no_gate_between_is_the_wrong_order(driven: Driven) -> None:
    driven.report("consent.check.completed", CONSENT)
    early = driven.report("human_review.completed", COMPLETIONS["request_human_review"])
    assert (early.outcome, early.drift) == ("drift", "wrong_order")
    driven.report("ai_review.completed", AI)
    assert driven.here.step_id == "status"
    driven.report("case.set_status.completed", COMPLETIONS["set_case_status"])
    assert driven.status == "completed"
    check_end(driven)


@pytest.mark.parametrize(
    ("name", "payload"),
    [
        ("case.images_check.completed", IMAGES),  # no step of this definition completes with it
        ("ai_review.failed", {"reason_code": "image_quality", "retryable": True}),  # not its turn, and no completion
    ],
)
def test_what_no_step_ahead_completes_with_is_an_unrequested_completion(
    driven: Driven, name: str, payload: dict[str, object]
) -> None:
    said = driven.report(name, payload)
    assert (said.outcome, said.drift, driven.state.early) == ("drift", "unrequested_completion", {})
    assert driven.here.step_id == "consent"


def test_a_completion_of_what_is_done_already_is_unrequested_and_changes_nothing(driven: Driven) -> None:
    driven.report("consent.check.completed", CONSENT)
    again = driven.report("consent.check.completed", CONSENT | {"granted": False})
    assert (again.outcome, again.drift, driven.here.step_id) == ("drift", "unrequested_completion", "ai")
    assert driven.state.context["consent"]["granted"] is True


def test_a_parked_completion_of_a_branch_not_taken_is_never_used(driven: Driven) -> None:
    driven.report("ai_review.completed", AI)
    driven.report("consent.check.completed", CONSENT | {"granted": False})
    assert (driven.status, driven.state.halt_step_id) == ("halted", "stop")
    assert "ai" not in driven.state.context


def test_a_parked_completion_whose_output_does_not_fit_is_drift_of_the_contract_when_its_turn_comes() -> None:
    steps = {
        "consent": step("gate_on_consent", "check"),
        "check": step("call_check", "done"),
        "done": step("emit_final", "TERMINAL"),
    }
    driven = Driven(definition(steps), "client_driven")
    driven.start()
    driven.report("call_check.completed", {"value": 11})
    driven.report("consent.check.completed", CONSENT)
    assert (driven.status, driven.state.halt_reason) == ("halted", "output_contract_drift")
    assert "check" not in driven.state.context


def test_a_step_that_nobody_hears_of_times_out_here_too(driven: Driven) -> None:
    driven.time_out()
    assert (driven.status, driven.state.halt_reason) == ("halted", "step_timed_out")
    late = driven.report("consent.check.completed", CONSENT)
    assert (late.outcome, driven.status) == ("late", "halted")


def test_a_failure_is_final_for_the_observer(driven: Driven) -> None:
    driven.report("consent.check.completed", CONSENT)
    driven.report("ai_review.failed", {"reason_code": "image_quality", "retryable": True})
    assert (driven.status, driven.state.halt_step_id, driven.tries("ai")) == ("halted", "stop", ["failed"])
