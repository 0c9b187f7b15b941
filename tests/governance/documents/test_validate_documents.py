"""The ten documents together: presence, agreement between them, and what the contract's effect forbids."""

from typing import Any

import pytest

from governance.contracts.rules.documents import default_documents, validate_documents

pytestmark = pytest.mark.unit

RETRIES = {"automatic_retries": "when_safe", "max_attempts": 3}
Documents = dict[str, dict[str, Any]]


@pytest.fixture
def documents() -> Documents:
    return default_documents()


def found(documents: object, effect: str = "once") -> set[tuple[str, str]]:
    return {(problem.pointer, problem.rule) for problem in validate_documents(documents, effect=effect)}


def test_automatic_retries_are_refused_for_effect_once_and_accepted_where_they_are_safe(
    documents: Documents,
) -> None:
    documents["retry_and_replay"] |= RETRIES
    assert found(documents, "once") == {("/retry_and_replay/automatic_retries", "retries_need_safe_effect")}
    assert found(documents, "idempotent") == set()
    assert found(documents, "none") == set()


@pytest.mark.parametrize("state", ["completed", "failed-quarantined"])
def test_what_may_have_run_once_cannot_be_replayed_past_the_quarantine_case(documents: Documents, state: str) -> None:
    documents["retry_and_replay"]["replay"]["eligible_states"] = [state]
    assert found(documents, "once") == {("/retry_and_replay/replay/eligible_states", "replay_needs_safe_effect")}
    assert found(documents, "idempotent") == set()


def test_an_unknown_effect_is_refused_and_held_to_the_strictest_rules(documents: Documents) -> None:
    documents["retry_and_replay"] |= RETRIES
    assert found(documents, "sometimes") == {
        ("", "effect_unknown"),
        ("/retry_and_replay/automatic_retries", "retries_need_safe_effect"),
    }


def test_deduplication_without_a_key_is_accepted_only_when_there_is_no_effect(documents: Documents) -> None:
    documents["idempotency_key_policy"] |= {"required": False, "required_headers": []}
    documents["attempt_identity_envelope"]["required"].remove("idempotency_key")
    assert found(documents, "once") == {("/idempotency_key_policy/required", "dedupe_needs_key")}
    assert found(documents, "none") == set()
    documents["idempotency_key_policy"]["mode"] = "timeline"
    assert found(documents, "once") == set()


def test_the_envelope_and_the_key_policy_must_agree_on_the_key(documents: Documents) -> None:
    documents["attempt_identity_envelope"]["required"].remove("idempotency_key")
    assert found(documents) == {("/attempt_identity_envelope/required", "key_requirement_mismatch")}


def test_a_key_must_outlive_the_retries_of_its_attempt(documents: Documents) -> None:
    documents["idempotency_key_policy"]["ttl_seconds"] = 3_599
    assert found(documents, "idempotent") == set()
    documents["retry_and_replay"] |= RETRIES
    assert found(documents, "idempotent") == {("/idempotency_key_policy/ttl_seconds", "key_expires_before_work")}
    documents["idempotency_key_policy"]["ttl_seconds"] = 3_600
    assert found(documents, "idempotent") == set()


def test_a_key_must_outlive_the_queue_its_attempt_waits_in(documents: Documents) -> None:
    documents["idempotency_key_policy"]["ttl_seconds"] = 60
    documents["concurrency_and_locks"]["queue_timeout_seconds"] = 61
    assert found(documents) == set()
    documents["concurrency_and_locks"]["when_busy"] = "queue"
    assert found(documents) == {("/idempotency_key_policy/ttl_seconds", "key_expires_before_work")}


def test_a_missing_document_and_one_of_no_area_are_both_reported(documents: Documents) -> None:
    del documents["throttles_and_misuse"]
    documents["weather"] = {}
    assert found(documents) == {("/throttles_and_misuse", "missing_document"), ("/weather", "unknown_area")}


def test_findings_of_one_document_carry_its_name_in_the_pointer(documents: Documents) -> None:
    documents["throttles_and_misuse"]["limits"].pop()
    assert found(documents) == {
        ("/throttles_and_misuse/limits", "min_items"),
        ("/throttles_and_misuse/limits", "throttle_missing"),
    }


@pytest.mark.parametrize("value", [None, [], "documents", 7])
def test_something_that_is_no_set_of_documents_is_reported(value: object) -> None:
    assert found(value) == {("", "type")}
