"""Envelopes: everything that is wrong at once, by place, and never what was submitted."""

from datetime import UTC, datetime, timedelta, timezone
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.properties import examples
from tests.workflows.pure import JSON, event
from workflows.events.rules import (
    build_envelope,
    envelope_problems,
    envelope_shape_problems,
    event_moment,
    payload_problems,
    stamp,
    storable,
)

pytestmark = pytest.mark.unit

AT = datetime(2026, 11, 16, 9, 30, tzinfo=UTC)
COMPLETED = {"confidence": 0.62, "diagnoses": [{"code": "D22.9", "rank": 1}], "raw_response_id": "resp-1"}


def envelope(name="ai_review.completed", payload=None, **changes):
    built = build_envelope(
        event=event(name),
        event_id=uuid4(),
        occurred_at=AT,
        correlation_id=uuid4(),
        case_id=uuid4(),
        org_id=uuid4(),
        product_id=uuid4(),
        payload=COMPLETED if payload is None else payload,
    )
    return {key: value for key, value in {**built, **changes}.items() if value is not None}


def places(given):
    return [(problem.pointer, problem.rule) for problem in envelope_problems(given)]


def test_a_built_envelope_is_accepted_as_it_is():
    given = envelope()
    assert envelope_problems(given) == []
    assert storable(given) == given
    assert given["occurred_at"] == "2026-11-16T09:30:00.000000Z"


def test_causation_and_trace_are_optional_parts():
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    assert envelope_problems(envelope(causation_id=str(uuid4()), traceparent=trace)) == []
    assert places(envelope(causation_id="x", traceparent="y")) == [
        ("/causation_id", "format"),
        ("/traceparent", "format"),
    ]


@pytest.mark.parametrize(
    "field",
    [
        "event_id",
        "event_type",
        "schema_version",
        "occurred_at",
        "correlation_id",
        "case_id",
        "org_id",
        "product_id",
        "payload",
    ],
)
def test_every_other_field_is_required(field):
    given = envelope()
    del given[field]
    assert places(given) == [(f"/{field}", "required")]


@pytest.mark.parametrize("field", ["event_id", "case_id", "org_id", "product_id", "causation_id"])
@pytest.mark.parametrize("value", ["", "1", 7, None, "urn:uuid:" + str(UUID(int=1)), UUID(int=1).hex])
def test_ids_are_uuids(field, value):
    assert f"/{field}" in {pointer for pointer, _ in places(envelope() | {field: value})}


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-16",
        "2026-11-16T09:30:00",
        "2026-11-16T09:30Z",
        "2026-11-16 09:30:00Z",
        "2026-02-30T00:00:00Z",
        "2026-11-16T23:59:60Z",
        "2026-11-16T25:00:00Z",
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59-14:00",
        "0000-01-01T00:00:00Z",
        1763285400,
    ],
)
def test_a_moment_needs_seconds_a_zone_and_a_calendar(text):
    assert [pointer for pointer, _ in places(envelope(occurred_at=text))] == ["/occurred_at"]


@pytest.mark.parametrize(
    "text",
    ["2026-11-16T09:30:00Z", "2026-11-16T09:30:00.123456789Z", "2026-11-16T15:00:00+05:30", "2024-02-29T00:00:00Z"],
)
def test_any_zone_and_fraction_is_a_moment(text):
    assert envelope_problems(envelope(occurred_at=text)) == []
    assert getattr(event_moment(text), "tzinfo", None) is UTC


def test_stamps_are_utc_and_sort_as_text():
    east = timezone(timedelta(hours=5, minutes=30))
    assert stamp(datetime(2026, 11, 16, 15, 0, tzinfo=east)) == "2026-11-16T09:30:00.000000Z"
    assert event_moment(stamp(AT)) == AT


def test_an_unknown_type_is_answered_with_the_nearest_and_an_unknown_version_with_the_known():
    (problem,) = envelope_problems(envelope(event_type="ai_review.complete"))
    assert (problem.pointer, problem.rule) == ("/event_type", "unknown_event_type")
    assert "ai_review.completed" in problem.message
    (problem,) = envelope_problems(envelope(schema_version="v9"))
    assert (problem.pointer, problem.rule) == ("/schema_version", "unknown_schema_version")
    assert "v1" in problem.message


def test_all_problems_come_at_once():
    given = envelope(event_id="x", occurred_at="y", event_type="case.create", org_id=None, more=1)
    assert [pointer for pointer, _ in places(given)] == ["/event_id", "/event_type", "/more", "/occurred_at", "/org_id"]


@pytest.mark.parametrize(
    ("payload", "pointer"),
    [
        (COMPLETED | {"confidence": 1.5}, "/payload/confidence"),
        (COMPLETED | {"note": "seen"}, "/payload/note"),
        (COMPLETED | {"diagnoses": [{"code": "a b c"}]}, "/payload/diagnoses/0/code"),
        ({"confidence": 0.5, "diagnoses": []}, "/payload/raw_response_id"),
        (COMPLETED | {"raw_response_id": "4111111111111111"}, "/payload/raw_response_id"),
        (COMPLETED | {"diagnoses": [{"code": "784-1987-1234567-1"}]}, "/payload/diagnoses/0/code"),
    ],
)
def test_the_payload_is_judged_by_its_type_and_by_the_boundary(payload, pointer):
    assert pointer in {place for place, _ in places(envelope(payload=payload))}
    assert envelope_shape_problems(envelope(payload=payload)) == []


def test_a_person_in_a_reference_is_found():
    problems = payload_problems(event("case.created"), {"patient_id": "Amina"})
    assert [(problem.pointer, problem.rule) for problem in problems] == [("/payload/patient_id", "person_name")]
    assert payload_problems(event("case.created"), {"patient_id": "patient-0042"}) == []


def test_a_secret_as_correlation_id_is_refused():
    assert places(envelope(correlation_id="4111111111111111")) == [("/correlation_id", "card_number")]


def test_a_tolerated_field_is_accepted_and_not_kept():
    failed = {
        "reason_code": "image_quality",
        "retryable": False,
        "error": "Mr. John Smith: blurred, call +44 20 7946 0958",
    }
    given = envelope("ai_review.failed", payload=failed)
    assert envelope_problems(given) == []
    assert storable(given)["payload"] == {"reason_code": "image_quality", "retryable": False}
    assert given["payload"] == failed


def test_no_problem_repeats_what_was_submitted():
    words = "amina.yusuf@example.org"
    given = envelope(
        event_id=words,
        event_type=words,
        schema_version=words,
        occurred_at=words,
        correlation_id=words,
        payload={words: words},
    ) | {words: words}
    assert "amina" not in repr(envelope_problems(given))
    assert "amina" not in repr(
        envelope_problems(envelope(payload={**COMPLETED, words: words, "raw_response_id": words}))
    )


@given(JSON)
@examples(80)
def test_nothing_makes_it_raise(value):
    assert envelope_problems(value)


@given(st.dictionaries(st.sampled_from([*envelope(), "causation_id", "x"]), JSON, max_size=10))
@examples(80)
def test_no_field_makes_it_raise(fields):
    given = envelope() | fields
    problems = envelope_problems(given)
    assert all(problem.pointer == "" or problem.pointer.startswith("/") for problem in problems)
    assert problems == sorted(problems)
