"""Every detector against its corpus, and the corpus of ordinary metadata against all of them."""

import pytest

from governance.boundary.rules import BoundaryPolicy, inspect_metadata, inspect_note, inspect_reference
from governance.boundary.rules.detectors import DETECTOR_NAMES
from tests.governance.boundary.corpus import ACCEPTED, REFUSED

pytestmark = pytest.mark.unit

POLICY = BoundaryPolicy(schema=None)
REFUSED_CASES = [(rule, key, value) for rule, cases in REFUSED.items() for key, value in cases]
# Rules that need no key hint, and whose neutral text would trip them in a reference and a note as well.
TEXTS = [(rule, value) for rule, key, value in REFUSED_CASES if key == "link" and isinstance(value, str)]

# Notes are prose, and lower-case words are a name only when nothing else is there.
IN_A_SENTENCE = [case for case in TEXTS if case[0] != "free_text" and case[1] != "amina yusuf"]


def rules(found):
    return {finding.rule for finding in found}


def test_every_detector_has_examples():
    assert {"forbidden_key", *REFUSED} == set(DETECTOR_NAMES)


@pytest.mark.parametrize(("rule", "key", "value"), REFUSED_CASES)
def test_a_forbidden_value_is_found_by_its_rule(rule, key, value):
    found = inspect_metadata({key: value}, policy=POLICY)
    assert rule in rules(found)
    assert str(value) not in repr(found)


@pytest.mark.parametrize(("key", "value"), ACCEPTED)
def test_ordinary_metadata_has_no_findings(key, value):
    assert inspect_metadata({key: value}, policy=POLICY) == ()


@pytest.mark.parametrize(("rule", "text"), TEXTS)
def test_a_reference_is_held_to_the_same_rules(rule, text):
    assert rule in rules(inspect_reference(text, pointer="/action/target_ref"))


@pytest.mark.parametrize(("rule", "text"), IN_A_SENTENCE)
def test_a_note_is_held_to_the_same_rules_inside_a_sentence(rule, text):
    assert rule in rules(inspect_note(f"checked {text} again"))


@pytest.mark.parametrize(
    "text",
    [value for key, value in ACCEPTED if isinstance(value, str) and key.endswith(("_ref", "_id", "arn"))],
)
def test_ordinary_references_have_no_findings(text):
    assert inspect_reference(text, pointer="/action/payload_ref") == ()


@pytest.mark.parametrize("name", ["patient_name", "date_of_birth", "diagnosis", "orders.create", "Email"])
def test_names_of_written_fields_are_declarations_and_pass_as_references(name):
    assert inspect_reference(name, pointer="/action/fields/0") == ()


@pytest.mark.parametrize(
    "text",
    [
        "Second reader agreed, images were sent again by the site.",
        "Duplicate of case-2026-00017; closing.\nSee 0190c5a4-3f6e-7b21-9c1d-2f4e6a8b0c1d.",
        "Approved after call with the site, 3 of 4 images usable.",
        "Rolled back to v2.10.3 at 2026-11-16T03:25:09Z, queue was 1200 deep.",
        "",
    ],
)
def test_ordinary_notes_have_no_findings(text):
    assert inspect_note(text) == ()


def test_a_note_over_280_characters_is_too_large():
    assert inspect_note("word " * 56) == ()
    assert rules(inspect_note("word " * 56 + "x")) == {"too_large"}


def test_a_reference_of_three_words_is_free_text_and_two_capitalised_words_are_a_name():
    assert rules(inspect_reference("order for tuesday", pointer="/r")) == {"free_text"}
    assert rules(inspect_reference("Zzyzx Qwort", pointer="/r")) == {"person_name"}


def test_text_that_is_not_text_is_a_type_finding_and_never_an_exception():
    assert rules(inspect_reference(17, pointer="/r")) == {"schema_type"}
    assert rules(inspect_note(None)) == {"schema_type"}


@pytest.mark.parametrize("order", ["1000000008", "9434765919", "86095742719"])
def test_a_number_inside_an_opaque_identifier_is_not_taken_for_a_weakly_checked_id(order):
    assert inspect_reference(f"ord-{order}", pointer="/r") == ()
    assert rules(inspect_reference(order, pointer="/r")) >= {"national_id"}
