"""The six starter workflows of S4 section 7."""

import pytest

from workflows.definitions.rules.document import read_definition
from workflows.definitions.rules.starters.starters import NAMES, definition_starter, starters

pytestmark = pytest.mark.unit

# The way of a case for which everything goes well and every branch escalates.
WAYS = {
    "ai_only": "consent_gate image_check ai_review emit_done",
    "ai_plus_clinician": "consent_gate image_check ai_review customer_review emit_done",
    "ai_with_confidence_escalation": "consent_gate image_check ai_review branch_confidence customer_review emit_done",
    "ai_plus_clinician_plus_sa_qa_sample": (
        "consent_gate image_check ai_review customer_review branch_sample sa_qa emit_done"
    ),
    "clinician_only": "consent_gate image_check customer_review emit_done",
    "ai_escalation_plus_sa_sample": (
        "consent_gate image_check ai_review branch_confidence customer_review branch_sample sa_qa emit_done"
    ),
}
GOOD = ("on_pass", "on_true", "on_complete")


def test_there_are_six_in_the_order_of_the_design():
    assert list(starters()) == list(NAMES) == list(WAYS)


@pytest.mark.parametrize("name", NAMES)
def test_each_goes_the_way_that_the_design_draws(name):
    definition = read_definition(definition_starter(name), definition_id="d")
    way, at = [], definition.start_step
    while at != "TERMINAL":
        way.append(at)
        transitions = definition.step(at).transitions
        at = next(transitions[outcome] for outcome in GOOD if outcome in transitions)
    assert way == WAYS[name].split()


@pytest.mark.parametrize("name", NAMES)
def test_each_halts_with_the_designs_reasons_and_retries_only_the_ai(name):
    steps = read_definition(definition_starter(name), definition_id="d").steps.values()
    reasons = {step.params["reason_code"] for step in steps if step.kind == "halt"}
    assert reasons == {"consent_missing", "insufficient_images"} | (
        {"ai_review_failed"} if name != "clinician_only" else set()
    )
    retried = {(step.kind, step.max_retries, step.retry_backoff) for step in steps if step.max_retries}
    assert retried == ({("run_ai_review", 3, "exponential")} if name != "clinician_only" else set())


def test_a_copy_can_be_changed_without_changing_the_starter():
    definition_starter("ai_only")["steps"].clear()
    assert definition_starter("ai_only")["steps"]


def test_an_unknown_name_is_a_key_error():
    with pytest.raises(KeyError):
        definition_starter("ai")
