"""`/event-types`: every event of the catalogue with its JSON Schema."""

from uuid import uuid4

from jsonschema import Draft202012Validator
from rest_framework.test import APIClient

from tests.cast import Cast
from tests.governance.decide.support import problem
from workflows.events.rules import event_types
from workflows.webhooks.rules.events import TYPES

URL = "/api/v1/event-types"


def test_all_are_listed_and_each_has_a_schema_that_is_one(cast: Cast) -> None:
    api = cast.api("orchestrator:read")
    listed = api.get(URL).json()
    assert (listed["next"], listed["previous"]) == (None, None)
    names = [row["name"] for row in listed["results"]]
    assert names == sorted({*(event.name for event in event_types()), *TYPES})
    for row in listed["results"]:
        one = api.get(f"{URL}/{row['name']}").json()
        assert {name: one[name] for name in row} == row
        assert one["versions"] == ["v1"]
        Draft202012Validator.check_schema(one["schema"])
        assert (one["webhook_schema"] is not None) == row["webhook"] == (row["name"] in TYPES)
        assert api.get(one["schema"]["$id"]).json() == one["schema"]


def test_the_schema_judges_an_event(cast: Cast) -> None:
    schema = cast.api("orchestrator:read").get(f"{URL}/case.created").json()["schema"]
    envelope = {
        "event_id": str(uuid4()),
        "event_type": "case.created",
        "schema_version": "v1",
        "occurred_at": "2026-11-16T12:00:00Z",
        "correlation_id": str(uuid4()),
        "case_id": str(uuid4()),
        "org_id": str(uuid4()),
        "product_id": str(uuid4()),
        "payload": {"patient_id": "pat-0001"},
    }
    validator = Draft202012Validator(schema)
    assert validator.is_valid(envelope)
    assert not validator.is_valid(envelope | {"event_type": "case.closed"})
    assert not validator.is_valid(envelope | {"payload": {}})


def test_they_are_filtered_by_direction(cast: Cast) -> None:
    api = cast.api("orchestrator:read")
    ways = ("in", "out", "webhook")
    found = {way: {row["name"] for row in api.get(f"{URL}?direction={way}").json()["results"]} for way in ways}
    assert "case.created" in found["in"]
    assert "ai_review.requested" in found["out"]
    assert "attempt.held" in found["webhook"]
    assert not found["in"] & found["out"]
    assert {row["name"] for row in api.get(f"{URL}?webhook=true").json()["results"]} == set(TYPES)
    assert problem(api.get(f"{URL}?direction=up")) == (400, "invalid-input")
    assert problem(api.get(f"{URL}?colour=red")) == (400, "unknown-parameter")


def test_what_does_not_exist_is_404_and_who_may_not_read_is_refused(cast: Cast) -> None:
    api = cast.api("orchestrator:read")
    for path in ("/case.exploded", "/case.created/v9", "/case.created/v0"):
        assert problem(api.get(URL + path)) == (404, "not-found")
    for path in ("", "/case.created", "/case.created/v1"):
        assert cast.session(cast.auditor).get(URL + path).status_code == 200
        assert problem(cast.api("orchestrator:write").get(URL + path)) == (403, "scope-missing")
        assert problem(cast.session(cast.nobody).get(URL + path)) == (403, "scope-missing")
        assert problem(APIClient().get(URL + path)) == (401, "credential-missing")
