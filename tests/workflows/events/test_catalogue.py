"""The catalogue of S4 4.3, word for word, and the schemas that are published for it."""

import json

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from governance.boundary.rules.allowlist import allow_list_problems
from tests.properties import examples
from tests.workflows.pure import UUIDS, event, values_of
from workflows.events.rules import LIFECYCLE, event_type, event_types, schema_document, versions_of
from workflows.kinds.registry import kinds, shipped
from workflows.kinds.shapes import RESERVED_EVENTS

pytestmark = pytest.mark.unit

# Name: fields; a question mark for what may be absent. S4 4.3, with case.created (5.7) and workflow.intervened (6.6).
OUT = {
    "workflow.started": "instance_id definition_id mode",
    "workflow.halted": "instance_id halt_step_id? reason_code reason_note?",
    "workflow.completed": "instance_id completed_at output?",
    "workflow.overdue": "instance_id step_id due_at",
    "workflow.cancelled": "instance_id cancelled_by reason?",
    "workflow.intervened": "instance_id action performed_by reason_code step_id?",
    "consent.check.requested": "types patient_id",
    "case.images_check.requested": "min_count image_types?",
    "ai_review.requested": "images product_id",
    "human_review.requested": "tier context_snapshot",
    "case.set_status.requested": "status",
    "workflow.webhook_emit.requested": "event_name payload",
    "case.workflow.completed": "final_diagnoses context_snapshot definition_id",
}
IN = {
    "case.created": "patient_id orchestration_mode? image_ids?",
    "run.requested": "definition_slug business_key input?",
    "consent.check.completed": "granted missing_types",
    "case.images_check.completed": "count passed image_ids",
    "consent.check.failed": "reason_code retryable",
    "case.images_check.failed": "reason_code retryable",
    "case.set_status.failed": "reason_code retryable",
    "ai_review.completed": "confidence diagnoses raw_response_id",
    "ai_review.failed": "reason_code retryable error?",
    "human_review.completed": "decision diagnoses? result_ref? result_sha256? reviewer_id",
    "human_review.failed": "reason_code retryable",
    "human_task.completed": "form? outcome reviewer",
    "reviewer.assigned": "reviewer",
    "reviewer.unassigned": "reason_code retryable",
    "case.set_status.completed": "previous_status new_status",
    "workflow.webhook_emit.completed": "delivery_id",
}
NAMES = sorted(OUT | IN)
COPIES = {
    "workflow.webhook_emit.requested": "payload",
    "human_task.completed": "form",
    "workflow.completed": "output",
    "run.requested": "input",
}


def fields(of) -> set[str]:
    return {name if name in of.schema["required"] else f"{name}?" for name in of.schema["properties"]}


def test_the_catalogue_is_complete_and_has_nothing_else():
    brought = {one.name for name, kind in kinds().items() if name not in shipped() for one in kind.events}
    there = [one for one in event_types() if one.name not in brought]
    assert [one.name for one in there] == NAMES
    assert {one.name: fields(one) for one in there} == {name: set(text.split()) for name, text in (OUT | IN).items()}
    assert {one.name for one in there if one.direction == "in"} == set(IN)


def test_a_type_is_found_by_name_and_version():
    assert event("ai_review.completed").version == "v1"
    assert event_type("ai_review.completed", "v2") is None
    assert event_type("ai_review.complete") is None
    assert (versions_of("case.created"), versions_of("case")) == (["v1"], [])


def test_holdpoints_own_names_are_reserved():
    assert {one.name for one in LIFECYCLE} == set(RESERVED_EVENTS)


@pytest.mark.parametrize("name", NAMES)
def test_payloads_hold_references_and_codes_and_are_closed(name):
    """What has no fixed fields is a copy of outputs that were accepted before, bounded in every direction."""
    schema = dict(event(name).schema)
    copies = (COPIES.get(name, "context_snapshot"),)
    dropped = event(name).dropped
    schema["properties"] = {
        key: value for key, value in schema["properties"].items() if key not in copies and key not in dropped
    }
    assert allow_list_problems(schema, keys_checked=False) == []


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
@examples(10)
def test_the_published_schema_accepts_the_whole_event_and_nothing_more(name, data):
    document = json.loads(json.dumps(schema_document(event(name))))
    validator = jsonschema_rs.Draft202012Validator(document, validate_formats=True)
    envelope = {
        "event_id": data.draw(UUIDS),
        "event_type": name,
        "schema_version": "v1",
        "occurred_at": "2026-11-16T10:00:00Z",
        "correlation_id": "c-1",
        "case_id": data.draw(UUIDS),
        "org_id": data.draw(UUIDS),
        "product_id": data.draw(UUIDS),
        "payload": _payload(event(name), data),
    }
    assert validator.is_valid(envelope)
    assert not validator.is_valid({**envelope, "more": 1})
    assert not validator.is_valid({**envelope, "event_type": "case.other"})
    assert not validator.is_valid({**envelope, "payload": {**envelope["payload"], "more": 1}})


def _payload(of, data):
    moments = {name for name, field in of.schema["properties"].items() if field.get("format") == "date-time"}
    schema = {**of.schema, "properties": {k: v for k, v in of.schema["properties"].items() if k not in moments}}
    return data.draw(values_of(schema)) | dict.fromkeys(moments, "2026-11-16T10:00:00Z")


def test_a_tolerated_field_is_marked_as_deprecated():
    document = schema_document(event("ai_review.failed"))
    assert document["properties"]["payload"]["properties"]["error"]["deprecated"] is True
    assert "deprecated" not in event("ai_review.failed").schema["properties"]["error"]
    assert document["$id"].endswith("/ai_review.failed/v1")
