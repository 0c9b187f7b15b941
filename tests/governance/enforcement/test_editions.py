"""Detectors learn, stored decisions stay: a decision is made with the edition that its facts name."""

import pytest

from governance.boundary.rules.editions import CURRENT, FIRST
from governance.enforcement.rules import Verdict, evaluate, storable_request
from tests.governance.enforcement.support import REMOVE, as_bytes, changed, environment, request

pytestmark = pytest.mark.unit

LEARNED = ["severe chest pain", "patientName-Smith", "mrn12345678", '{"a": 1}', "amFuZS5kb2VAZXhhbXBsZS5vcmc="]


@pytest.mark.parametrize("value", LEARNED)
def test_what_the_first_edition_let_through_is_still_let_through_by_its_decisions(value: str) -> None:
    asked = changed(request(), {"metadata.ticket": value})
    before = evaluate(asked, environment())
    assert before.verdict is Verdict.ALLOW
    assert as_bytes(evaluate(asked, environment({"facts.boundary_edition": FIRST}))) == as_bytes(before)


@pytest.mark.parametrize("value", LEARNED)
def test_a_decision_of_the_current_edition_denies_it_and_is_replayed_the_same(value: str) -> None:
    world = environment({"facts.boundary_edition": CURRENT})
    asked = changed(request(), {"metadata.ticket": value})
    decision = evaluate(asked, world)
    assert decision.reason_code == "metadata_boundary"
    assert as_bytes(evaluate(storable_request(asked, decision), world)) == as_bytes(decision)


@pytest.mark.parametrize("place", ["action.target_ref", "action.payload_ref", "envelope.patient_context_ref"])
def test_references_are_judged_by_the_edition_too(place: str) -> None:
    asked = changed(request(), {place: "mrn12345678"})
    assert evaluate(asked, environment()).verdict is Verdict.ALLOW
    assert evaluate(asked, environment({"facts.boundary_edition": CURRENT})).reason_code == "metadata_boundary"


def test_the_name_of_a_written_field_may_be_a_clinical_phrase() -> None:
    asked = changed(request(), {"action.fields": ["chest_pain", "status"]})
    assert evaluate(asked, environment({"facts.boundary_edition": CURRENT})).verdict is Verdict.ALLOW


@pytest.mark.parametrize("edition", [0, CURRENT + 1, "2"])
def test_an_edition_that_this_program_does_not_know_is_a_denial(edition: object) -> None:
    decision = evaluate(request(), environment({"facts.boundary_edition": edition}))
    assert decision.reason_code == "enforcement_exception"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"metadata.amount": 3}, "`amount` is not in this contract's allow-list; the privacy owner can add it."),
        ({"metadata.ticket": "severe chest pain"}, "`ticket` contains a clinical phrase; send a code of your own"),
        (
            {"envelope.patient_context_ref": REMOVE},
            "`patient_context_ref` is required by this contract's envelope and missing; send it in the body.",
        ),
    ],
)
def test_the_explanation_names_field_rule_and_remedy(changes: dict[str, object], words: str) -> None:
    if "envelope.patient_context_ref" in changes:
        world = environment({"contract.documents.attempt_identity_envelope.required": ["patient_context_ref"]})
    else:
        world = environment({"facts.boundary_edition": CURRENT})
    decision = evaluate(changed(request(), dict(changes)), world)
    denied = [result for result in decision.results if result.reason_code == decision.reason_code]
    assert words in denied[0].explanation
    (error,) = denied[0].refused_fields
    assert words in error.message
    assert error.remedy
    assert error.rule in {"not_in_schema", "clinical_phrase", "missing"}
