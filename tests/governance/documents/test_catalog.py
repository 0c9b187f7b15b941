"""The ten areas: order, owners, closed and described schemas, and defaults that are valid and safe."""

from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import pytest

from governance.contracts.rules.documents import (
    AREAS,
    ENVELOPE_FIELDS,
    FINAL_STATES,
    OWNER_GROUPS,
    STATES,
    TRANSITIONS,
    Area,
    UnknownAreaError,
    area,
    default_documents,
    validate_document,
    validate_documents,
)
from governance.contracts.rules.documents.areas.regional_compliance import REGION_CODES
from governance.regions.rules import load_profiles

pytestmark = pytest.mark.unit

TABLE = [
    ("attempt_identity_envelope", "trust-infrastructure"),
    ("idempotency_key_policy", "platform-architecture"),
    ("attempt_state_machine", "workflow-platform"),
    ("durable_attempt_store", "platform-architecture"),
    ("concurrency_and_locks", "platform-reliability"),
    ("retry_and_replay", "reliability-engineering"),
    ("failure_quarantine", "trust-operations"),
    ("throttles_and_misuse", "security-operations"),
    ("metadata_boundary", "privacy"),
    ("regional_compliance", "global-compliance"),
]
each_area = pytest.mark.parametrize("entry", AREAS, ids=lambda entry: entry.name)


def every_part(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """A schema and all schemas inside it."""
    yield path, schema
    for name, part in schema.get("properties", {}).items():
        yield from every_part(part, f"{path}/{name}")
    if isinstance(schema.get("items"), dict):
        yield from every_part(schema["items"], f"{path}/*")


def test_the_areas_are_the_ten_of_the_domain_table_in_its_order() -> None:
    assert [(entry.name, entry.owner_group) for entry in AREAS] == TABLE


def test_there_are_nine_owner_groups_each_once() -> None:
    assert len(OWNER_GROUPS) == len(set(OWNER_GROUPS)) == 9
    assert set(OWNER_GROUPS) == {owner for _, owner in TABLE}


def test_an_area_is_found_by_name_and_an_unknown_one_is_an_error() -> None:
    assert area("metadata_boundary").title == "Metadata-only boundary"
    with pytest.raises(UnknownAreaError) as refusal:
        area("no-such-area")
    assert "no-such-area" not in str(refusal.value)


@each_area
def test_every_schema_is_a_valid_draft_2020_12_schema(entry: Area) -> None:
    assert entry.schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert jsonschema_rs.meta.is_valid(entry.schema)


# What a document may leave out: the installation then says whether votes are signed.
OPTIONAL = {
    ("durable_attempt_store", ""): {"evidence"},
    ("attempt_identity_envelope", ""): {"signature", "patient_context"},
    ("idempotency_key_policy", ""): {"effect_identity"},
    ("concurrency_and_locks", "/limits"): {"per_user", "per_region"},
    ("metadata_boundary", ""): {"facts"},
    # What an entry needs depends on its type: `declaration_problems` checks it.
    ("metadata_boundary", "/facts/*"): {"currency", "currency_from", "values"},
}


@each_area
def test_every_part_of_a_schema_is_described_closed_and_bounded(entry: Area) -> None:
    for path, part in every_part(entry.schema):
        assert part.get("description"), path
        kinds = part.get("type", ())
        if "object" in kinds and (entry.name, path) != ("metadata_boundary", "/schema"):
            assert part["additionalProperties"] is False, path
            assert set(part["properties"]) - set(part["required"]) == OPTIONAL.get((entry.name, path), set()), path
        if "integer" in kinds or "number" in kinds:
            assert part["minimum"] <= part["maximum"], path
        if "array" in kinds:
            assert part["minItems"] <= part["maxItems"], path
        if "string" in kinds:
            assert "enum" in part or {"pattern", "maxLength"} <= set(part), path


@each_area
def test_every_default_is_valid_alone(entry: Area) -> None:
    assert validate_document(entry.name, entry.default) == ()


@pytest.mark.parametrize("effect", ["none", "idempotent", "once"])
def test_the_defaults_are_valid_together_whatever_the_effect(effect: str) -> None:
    assert validate_documents(default_documents(), effect=effect) == ()


def test_defaults_are_fresh_copies_that_a_caller_may_change() -> None:
    mine = default_documents()
    mine["retry_and_replay"]["replay"]["eligible_states"].append("completed")
    assert default_documents()["retry_and_replay"]["replay"]["eligible_states"] == ["preflight-denied"]


def test_the_defaults_are_the_safe_choices() -> None:
    start = default_documents()
    assert start["attempt_identity_envelope"]["required"] == [
        name for name in ENVELOPE_FIELDS if name != "patient_context_ref"
    ]
    assert start["idempotency_key_policy"]["mode"] == "dedupe"
    assert start["idempotency_key_policy"]["on_expired"] == "gone"
    assert start["idempotency_key_policy"]["ttl_seconds"] == 86_400
    assert start["concurrency_and_locks"]["when_busy"] == "deny"
    assert start["retry_and_replay"]["automatic_retries"] == "never"
    assert start["failure_quarantine"]["incident_required"] is True
    assert start["metadata_boundary"]["schema"] == {
        "type": "object",
        "additionalProperties": False,
        "properties": {},
    }
    assert start["metadata_boundary"]["detectors"] == {"disabled": []}


def test_the_lifecycle_has_the_seven_states_and_only_the_final_ones_are_never_left() -> None:
    left = {source for source, _, _ in TRANSITIONS}
    reached = {target for _, target, _ in TRANSITIONS}
    assert len(STATES) == 7
    assert set(STATES) - left == set(FINAL_STATES)
    assert reached | {"received"} == set(STATES)


def test_the_regions_a_contract_can_list_are_the_seed_regions_of_the_profiles() -> None:
    seeds = {profile.code for profile in load_profiles().profiles if profile.seed_region}
    assert set(REGION_CODES) == seeds
