"""Keys, limits, pointers and the schema part of an inspection."""

import pytest

from governance.boundary.rules import BoundaryFinding, BoundaryPolicy, inspect_metadata
from governance.boundary.rules.findings import MAX_FINDINGS, MESSAGES

pytestmark = pytest.mark.unit

POLICY = BoundaryPolicy(schema=None)
SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "required": ["case_id"],
    "properties": {
        "case_id": {"type": "string", "maxLength": 12},
        "stage": {"enum": ["first", "second"]},
        "run": {"type": "string", "format": "uuid"},
        "code": {"type": "string", "pattern": "^[A-Z]{3}$"},
        "parts": {
            "type": "array",
            "items": {
                "type": "object",
                "additionalProperties": False,
                "properties": {"size/mb": {"type": "integer"}},
            },
        },
    },
}


def found(metadata, policy=POLICY):
    return {(finding.pointer, finding.rule) for finding in inspect_metadata(metadata, policy=policy)}


def by_schema(metadata):
    return found(metadata, BoundaryPolicy(schema=SCHEMA))


FORBIDDEN = """
name first_name FirstName LASTNAME patient-name patient.name dob date_of_birth dateOfBirth ssn address home_address
address2 phone phone_2 email patientEmail e-mail diagnosis findings notes note clinical_notes comment free_text
freeText narrative symptoms password secret token access_token api_key apiKey authorization insurance insurance_plan
insuranceNumber body payload image images ｎａｍｅ na\u200bme Téléphone mrn passport_number social_security_number
"""
ABOUT = """
model_name step_name payload_ref payload_sha256 token_count prompt_tokens notes_count image_count email_template_id
policy_version idempotency_key patient_context_ref secret_ref renamed names_hash
"""


@pytest.mark.parametrize("key", FORBIDDEN.split())
def test_keys_that_name_forbidden_content_are_refused_however_they_are_written(key):
    assert "forbidden_key" in {rule for _, rule in found({key: 1})}


@pytest.mark.parametrize("key", ABOUT.split())
def test_keys_about_such_content_are_not(key):
    assert found({key: 1}) == set()


def test_a_contract_adds_keys_and_they_cover_longer_ones():
    policy = BoundaryPolicy(schema=None, forbidden_keys=("wardNumber",))
    assert found({"ward_number": 4, "home_ward-number": 5, "ward": 1}, policy) == {
        ("/metadata/ward_number", "forbidden_key"),
        ("/metadata/home_ward-number", "forbidden_key"),
    }


def test_a_finding_deep_inside_has_an_exact_pointer():
    assert found({"runs": [{"ok": 1}, {"link": ["x", "jane@example.com"]}]}) == {("/metadata/runs/1/link/1", "email")}


@pytest.mark.parametrize(
    "key",
    [
        "jane@example.com",
        "4111111111111111",
        "Jane Doe",
        "jane_doe",
        "AminaYusuf",
        "a/b",
        "id 7",
        "ref20261116",
        "",
    ],
)
def test_a_key_that_could_be_content_is_shown_by_its_place_among_the_sorted_keys(key):
    metadata = {"zebra": 1, key: {"link": "+14155552671"}, "AAA": 2}
    place = sorted(metadata, key=lambda name: name.encode("utf-16-be")).index(key)
    pointers = {pointer for pointer, rule in found(metadata) if rule == "phone"}
    assert pointers == {f"/metadata/#{place}/link"}


def test_the_order_of_keys_changes_no_finding():
    metadata = {"b": "jane@example.com", "jane@example.com": "x", "a b": "+14155552671"}
    backwards = dict(reversed(metadata.items()))
    assert inspect_metadata(metadata, policy=POLICY) == inspect_metadata(backwards, policy=POLICY)


def test_a_key_from_the_schema_is_always_shown_and_escaped():
    assert by_schema({"case_id": "c", "parts": [{"size/mb": "x"}]}) == {("/metadata/parts/0/size~1mb", "schema_type")}


def test_schema_disagreements_become_pointers_and_rules():
    metadata = {
        "case_id": "far too long for it",
        "stage": "third",
        "run": "no",
        "code": "abc",
        "parts": 3,
        "extra": 1,
    }
    assert by_schema(metadata) == {
        ("/metadata/case_id", "schema_limit"),
        ("/metadata/stage", "schema_value"),
        ("/metadata/run", "schema_format"),
        ("/metadata/code", "schema_format"),
        ("/metadata/parts", "schema_type"),
        ("/metadata/extra", "not_in_schema"),
    }
    assert by_schema({}) == {("/metadata/case_id", "schema_required")}


def test_an_unlisted_key_that_is_content_does_not_appear():
    assert by_schema({"case_id": "c", "jane@example.com": 1}) == {
        ("/metadata/#1", "email"),
        ("/metadata/#1", "not_in_schema"),
    }


def test_size_is_counted_in_bytes_of_compact_json_and_checked_before_anything_else():
    assert found({"k": "é" * 5}, BoundaryPolicy(schema=None, max_bytes=18)) == set()
    assert found({"k": "é" * 5}, BoundaryPolicy(schema=None, max_bytes=17)) == {("/metadata", "too_large")}
    assert found({"email": "j@x.com" * 999}) == {("/metadata", "too_large")}


def test_depth_counts_the_metadata_object_as_one():
    assert found({"a": {"b": [{}]}}) == set()
    assert found({"a": {"b": [{"c": {}}]}}) == {("/metadata", "too_deep")}


def test_a_value_that_contains_itself_is_too_deep():
    metadata = {}
    metadata["again"] = metadata
    assert found(metadata) == {("/metadata", "too_deep")}


def test_a_very_long_string_is_refused_unread():
    policy = BoundaryPolicy(schema=None, max_bytes=65_536)
    assert found({"k": "x" * 4097}, policy) == {("/metadata/k", "too_large")}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1, 2}, b"bytes", object()])
def test_what_is_not_json_is_named_so(value):
    assert found({"k": value}) == {("/metadata/k", "not_json")}


def test_a_key_that_is_no_string_is_not_json():
    assert found({7: 1}, BoundaryPolicy(schema=SCHEMA)) == {("/metadata/#0", "not_json")}


@pytest.mark.parametrize("value", ["a\x00b", "\ud800", "bell\x07"])
def test_characters_the_database_cannot_keep_are_refused(value):
    assert ("/metadata/k", "control_character") in found({"k": value})
    assert "control_character" in {rule for _, rule in found({value: 1})}


def test_numbers_that_json_readers_round_are_refused():
    assert found({"k": 2**53 - 1}) == set()
    assert found({"k": 2**53}) == {("/metadata/k", "number_range")}
    assert found({"k": 10**5000}) == {("/metadata", "too_large")}


@pytest.mark.parametrize("metadata", [[], "text", 3, None])
def test_metadata_that_is_no_object_is_a_type_finding(metadata):
    assert inspect_metadata(metadata, policy=POLICY) == (BoundaryFinding("/metadata", "schema_type"),)


def test_hints_of_a_key_reach_into_its_list_and_object():
    assert found({"birth": {"when": ["1980-02-29"]}}) == {("/metadata/birth/when/0", "date_of_birth")}


def test_findings_are_bounded_sorted_and_unique():
    result = inspect_metadata({"links": ["a@b.example"] * 80}, policy=POLICY)
    assert len(result) == MAX_FINDINGS
    assert list(result) == sorted(set(result))


def test_every_rule_has_a_message_that_ends_like_a_sentence():
    for rule, message in MESSAGES.items():
        found = BoundaryFinding("/metadata/x", rule)
        assert message.endswith(".")
        assert found.remedy.endswith(".")
        assert found.message.startswith("`x` ")
        assert found.message.endswith(found.remedy[1:])


def test_switching_a_detector_off_leaves_the_essential_ones_on():
    policy = BoundaryPolicy(schema=None, detectors=())
    metadata = {"a": "jane@example.com", "b": "4111111111111111", "name": "x"}
    assert found(metadata, policy) == {("/metadata/b", "card_number")}
