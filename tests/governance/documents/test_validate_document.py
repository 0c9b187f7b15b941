"""One document: every rule finds what it is for, all findings come at once, and no text of the document
comes back."""

from copy import deepcopy
from typing import Any

import pytest

from governance.contracts.rules.documents import UnknownAreaError, area, default_documents, validate_document

pytestmark = pytest.mark.unit

LONG_WAITS = {"automatic_retries": "when_safe", "max_attempts": 5, "window_seconds": 905}


def changed(area_name: str, changes: dict[str, Any]) -> dict[str, Any]:
    """The default document with some places (dotted paths) set to other values."""
    document = deepcopy(area(area_name).default)
    for path, value in changes.items():
        *parents, last = path.split(".")
        place: Any = document
        for part in parents:
            place = place[int(part)] if part.isdigit() else place[part]
        place[int(last) if last.isdigit() else last] = value
    return document


REFUSED: list[tuple[str, dict[str, Any], str, str]] = [
    (
        "attempt_identity_envelope",
        {"required": ["workflow_slug"] * 10},
        "/required",
        "identity_field_dropped",
    ),
    ("attempt_identity_envelope", {"runtime_modes": []}, "/runtime_modes", "min_items"),
    ("attempt_identity_envelope", {"runtime_modes": ["live"]}, "/runtime_modes/0", "allowed_value"),
    ("attempt_identity_envelope", {"formats.caller_ref": {}}, "/formats/caller_ref", "unknown_field"),
    ("idempotency_key_policy", {"ttl_seconds": 59}, "/ttl_seconds", "minimum"),
    ("idempotency_key_policy", {"ttl_seconds": 86_400.0}, "/ttl_seconds", "integer_form"),
    ("idempotency_key_policy", {"ttl_seconds": 2**53}, "/ttl_seconds", "not_canonical_json"),
    ("idempotency_key_policy", {"key.min_length": 201}, "/key/min_length", "key_length_order"),
    ("idempotency_key_policy", {"required": False}, "/required_headers", "key_header_mismatch"),
    ("idempotency_key_policy", {"required_headers": []}, "/required_headers", "key_header_mismatch"),
    ("idempotency_key_policy", {"conflict": "overwrite"}, "/conflict", "allowed_value"),
    ("attempt_state_machine", {"states": ["received"]}, "/states", "fixed_value"),
    ("attempt_state_machine", {"transitions.0.to": "completed"}, "/transitions", "fixed_value"),
    ("durable_attempt_store", {"keep": ["identity"]}, "/keep", "min_items"),
    ("durable_attempt_store", {"storage_class": "files"}, "/storage_class", "allowed_value"),
    ("concurrency_and_locks", {"limits.per_key": 2}, "/limits/per_key", "fixed_value"),
    ("concurrency_and_locks", {"limits.per_context": 11}, "/limits/per_context", "limit_order"),
    (
        "concurrency_and_locks",
        {"limits.per_workflow": None, "limits.per_context": 51},
        "/limits/per_context",
        "limit_order",
    ),
    ("concurrency_and_locks", {"queue_timeout_seconds": 0}, "/queue_timeout_seconds", "minimum"),
    ("retry_and_replay", {"max_attempts": 2}, "/max_attempts", "retries_off"),
    ("retry_and_replay", {"automatic_retries": "when_safe"}, "/max_attempts", "retries_on"),
    ("retry_and_replay", {"backoff_seconds": [30, 5]}, "/backoff_seconds", "backoff_order"),
    ("retry_and_replay", LONG_WAITS, "/window_seconds", "retry_window_too_short"),
    ("retry_and_replay", {"jitter_fraction": 1.5}, "/jitter_fraction", "maximum"),
    ("retry_and_replay", {"replay.requires_role": "Dr House"}, "/replay/requires_role", "pattern"),
    ("failure_quarantine", {"categories": ["timeout"]}, "/categories", "unknown_outcome_hidden"),
    (
        "failure_quarantine",
        {"triggers.0.category": "timeout"},
        "/triggers/0/category",
        "unknown_outcome_hidden",
    ),
    ("failure_quarantine", {"triggers.0.on": "adapter_timeout"}, "/triggers", "trigger_coverage"),
    (
        "failure_quarantine",
        {"categories": ["outcome_unknown"]},
        "/triggers/2/category",
        "category_not_in_use",
    ),
    ("failure_quarantine", {"compensation_contract": "refund"}, "/compensation_contract", "pattern"),
    ("failure_quarantine", {"compensation_contract": "refund/latest"}, "/compensation_contract", "pattern"),
    ("throttles_and_misuse", {"limits.0.per": "user"}, "/limits", "throttle_missing"),
    ("throttles_and_misuse", {"limits.0.per": "user"}, "/limits/1", "throttle_repeated"),
    (
        "throttles_and_misuse",
        {"shutdown_rules.release_needs_two_people": False},
        "/shutdown_rules/release_needs_two_people",
        "fixed_value",
    ),
    ("metadata_boundary", {"schema": True}, "/schema", "type"),
    ("metadata_boundary", {"max_bytes": 65_536}, "/max_bytes", "maximum"),
    ("metadata_boundary", {"forbidden_keys": ["a", "a"]}, "/forbidden_keys", "unique_items"),
    ("regional_compliance", {"regions": []}, "/regions", "min_items"),
    ("regional_compliance", {"regions": ["GB"]}, "/regions/0", "allowed_value"),
    ("regional_compliance", {"retention_years": 24}, "/retention_years", "retention_below_profile"),
    ("regional_compliance", {"residency": "anywhere"}, "/residency", "allowed_value"),
]

ACCEPTED: list[tuple[str, dict[str, Any]]] = [
    ("idempotency_key_policy", {"required": False, "required_headers": ["traceparent"]}),
    (
        "idempotency_key_policy",
        {"mode": "timeline", "ttl_seconds": 60, "on_expired": "new", "scope": "caller"},
    ),
    ("concurrency_and_locks", {"limits.per_workflow": None, "limits.per_context": 50}),
    ("retry_and_replay", LONG_WAITS | {"window_seconds": 906}),
    ("retry_and_replay", {"jitter_fraction": 0}),
    ("retry_and_replay", {"backoff_seconds": [5, 5, 30]}),
    ("retry_and_replay", {"replay": {"eligible_states": [], "requires_role": "customer_clinician"}}),
    ("failure_quarantine", {"compensation_contract": "refund-letter/3", "escalation_owner": "sa_qa"}),
    ("failure_quarantine", {"compensation_contract": "refund/v1.2.0"}),
    ("regional_compliance", {"retention_years": 25}),
    ("regional_compliance", {"regions": ["EU"], "retention_years": 10, "failover": "none"}),
    ("metadata_boundary", {"schema": {"type": "object", "properties": {"n": {"minimum": 0.0}}}}),
]


@pytest.mark.parametrize(("name", "changes", "pointer", "rule"), REFUSED)
def test_a_document_that_breaks_a_rule_is_refused_at_the_right_place(
    name: str, changes: dict[str, Any], pointer: str, rule: str
) -> None:
    problems = validate_document(name, changed(name, changes))
    assert (pointer, rule) in {(problem.pointer, problem.rule) for problem in problems}


@pytest.mark.parametrize(("name", "changes"), ACCEPTED)
def test_a_document_that_differs_within_the_rules_is_accepted(name: str, changes: dict[str, Any]) -> None:
    assert validate_document(name, changed(name, changes)) == ()


@pytest.mark.parametrize("name", sorted(default_documents()))
def test_each_missing_field_is_reported_by_name(name: str) -> None:
    missing = {problem.pointer for problem in validate_document(name, {}) if problem.rule == "required"}
    assert missing == {f"/{field}" for field in area(name).default}


def test_all_findings_come_at_once_and_in_a_stable_order() -> None:
    document = changed("idempotency_key_policy", {"ttl_seconds": 1, "mode": "maybe", "key.min_length": 250})
    document["extra/field~"] = 1
    problems = validate_document("idempotency_key_policy", document)
    assert [(problem.pointer, problem.rule) for problem in problems] == [
        ("/extra~1field~0", "unknown_field"),
        ("/key/min_length", "key_length_order"),
        ("/mode", "allowed_value"),
        ("/ttl_seconds", "minimum"),
    ]
    assert problems[2].message == "must be one of: dedupe or timeline"


def test_a_trigger_listed_twice_is_reported_beside_the_one_it_displaced() -> None:
    problems = validate_document(
        "failure_quarantine", changed("failure_quarantine", {"triggers.0.on": "adapter_timeout"})
    )
    assert {problem.message for problem in problems if problem.rule == "trigger_coverage"} == {
        "must list intent_without_receipt exactly once",
        "must list adapter_timeout exactly once",
    }


@pytest.mark.parametrize("field", ["escalation_owner", "compensation_contract", "blocked_actions"])
def test_a_text_of_the_document_is_never_repeated_in_a_message(field: str) -> None:
    problems = validate_document("failure_quarantine", changed("failure_quarantine", {field: "Jane Roe, 1970"}))
    assert problems
    assert not any("Jane" in problem.message + problem.pointer for problem in problems)


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), "\ud800", b"raw", (1, 2), {1: 2}, {"\udfff": 1}, object(), -(2**60)]
)
def test_what_is_not_canonical_json_is_reported_and_does_not_raise(value: object) -> None:
    problems = validate_document("metadata_boundary", changed("metadata_boundary", {"schema": {"x": value}}))
    assert {problem.rule for problem in problems} == {"not_canonical_json"}


def test_a_document_nested_beyond_reason_is_reported_and_does_not_raise() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    document = default_documents()["metadata_boundary"] | {"schema": {"x": deep}}
    assert [problem.message for problem in validate_document("metadata_boundary", document)] == ["is nested too deeply"]
    while deep:
        deep = deep[0]  # taken apart by hand: the interpreter's own way down would recurse


def test_an_unknown_area_is_an_error_of_the_caller() -> None:
    with pytest.raises(UnknownAreaError):
        validate_document("weather", {})
