"""What is stored of a refused request holds none of the refused values and is decided exactly like the original."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from governance.boundary.rules import inspect_reference
from governance.enforcement.rules import boundary_findings, evaluate, storable_request, withhold
from governance.enforcement.rules.inspection import _plainly_harmless
from governance.ledger.rules.entry import canonical_bytes
from tests.governance.enforcement.generators import REFERENCES, REQUEST_CHANGES
from tests.governance.enforcement.support import as_bytes, changed, environment, request, result_of
from tests.properties import examples

pytestmark = pytest.mark.unit

PLANTED = {
    "action.connector": "Jane Doe",
    "action.operation": "mail jane@example.org",
    "action.target_ref": "ssn-123-45-6789",
    "action.payload_ref": "4111111111111111",
    "action.fields": ["status", "jane@example.org"],
    "envelope.idempotency_key": "Jane Doe 42",
    "envelope.patient_context_ref": "Jane Doe",
    "envelope.request_trace_id": "jane@example.org",
    "envelope.review_owner": "Dr. Jane Doe",
    "metadata.ticket": "jane@example.org",
}


@pytest.mark.parametrize("place", PLANTED)
def test_each_planted_value_is_found_withheld_and_decided_the_same(place: str) -> None:
    made = changed(request(), {place: PLANTED[place]})
    decision = evaluate(made, environment())
    assert decision.reason_code == "metadata_boundary"
    findings = boundary_findings(decision)
    assert findings[0].pointer.startswith("/" + place.replace(".", "/"))
    stored = withhold(made, findings)
    assert b"ane" not in canonical_bytes(stored)
    assert "metadata" not in stored
    assert stored == storable_request(made, decision)
    assert as_bytes(evaluate(stored, environment())) == as_bytes(decision)


def test_the_original_is_left_as_it_was() -> None:
    made = changed(request(), PLANTED)
    before = canonical_bytes(made)
    withhold(made, boundary_findings(evaluate(made, environment())))
    assert canonical_bytes(made) == before


def test_neither_results_nor_explanations_hold_a_refused_value() -> None:
    decision = evaluate(changed(request(), PLANTED), environment())
    words = " ".join(result.explanation for result in decision.results)
    for text in (words, as_bytes(decision).decode()):
        for secret in ("Jane", "jane", "123-45", "41111"):
            assert secret not in text


def test_a_clean_request_is_stored_whole() -> None:
    assert storable_request(request(), evaluate(request(), environment())) == request()
    assert withhold(request(), ()) == request()


@pytest.mark.parametrize("failure", ["timeout", "raised", "raised:KeyError"])
def test_what_nobody_could_inspect_is_not_stored(failure: str) -> None:
    world = environment({"facts.failures": {"metadata_boundary": failure}})
    made = changed(request(), PLANTED)
    decision = evaluate(made, world)
    stored = storable_request(made, decision)
    assert result_of(decision, "metadata_boundary").reason_code == "enforcement_exception"
    assert b"ane" not in canonical_bytes(stored)
    assert b"41111" not in canonical_bytes(stored)
    assert as_bytes(evaluate(stored, world)) == as_bytes(decision)


@given(changes=REQUEST_CHANGES, failing=st.sampled_from([None, "metadata_boundary", "envelope"]))
@examples(300)
def test_the_stored_request_gives_the_same_decision_byte_for_byte(changes: dict[str, Any], failing: str | None) -> None:
    made = changed(request(), changes)
    world = environment({"facts.failures": {failing: "timeout"} if failing else {}})
    decision = evaluate(made, world)
    stored = storable_request(made, decision)
    again = evaluate(stored, world)
    assert as_bytes(again) == as_bytes(decision)
    assert boundary_findings(again) == boundary_findings(decision)
    assert storable_request(stored, again) == stored


HARMLESS = (
    r"[0-9a-f]{32}",
    r"[A-Za-z]{1,16}([-_./][A-Za-z]{1,16}){0,5}[-_./:]?[0-9]{1,5}",
    r"[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}",
)


@given(st.one_of(*(st.from_regex(shape, fullmatch=True) for shape in HARMLESS), st.text(max_size=40), REFERENCES))
@examples(600)
def test_a_reference_that_is_not_inspected_would_trip_no_detector(text: str | None) -> None:
    if text is not None and _plainly_harmless(text):
        assert inspect_reference(text, pointer="/x") == ()
