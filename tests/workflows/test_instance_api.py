"""Reading runs over the API: lists, the full state, steps with their tries, the log, interventions."""

from typing import Any
from uuid import uuid4

import pytest

from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.workflows.run_support import READ, URL, act, in_status, retry_waits, violations
from tests.workflows.running import Running

PAGES = ("", "/steps", "/events", "/interventions", "/next-step")


@pytest.fixture
def running(cast: Cast) -> Running:
    return Running(cast)


@pytest.fixture
def reader(cast: Cast) -> Any:
    return cast.api(READ)


def test_a_list_has_the_runs_newest_first_and_pages(running: Running, reader: Any) -> None:
    made = [running.start() for _ in range(3)]
    first = reader.get(URL, {"page_size": 2}).json()
    assert [row["id"] for row in first["results"]] == [str(made[2].id), str(made[1].id)]
    second = reader.get(first["next"]).json()
    assert [row["id"] for row in second["results"]] == [str(made[0].id)]
    assert second["next"] is None
    row = second["results"][0]
    assert row["case_id"] == str(made[0].case_id)
    assert (row["status"], row["mode"], row["definition_slug"]) == ("running", "active", "derm")
    assert "context" not in row


FILTERS = [
    ("status", "halted", 1),
    ("status", "running", 1),
    ("mode", "client_driven", 0),
    ("mode", "active", 2),
    ("halt_reason", "consent_missing", 1),
    ("halt_reason", "insufficient_images", 0),
    ("created_before", "2020-01-01T00:00:00Z", 0),
    ("created_after", "2020-01-01T00:00:00Z", 2),
]


def test_a_list_is_filtered(running: Running, reader: Any) -> None:
    in_status(running, "halted")
    running.start()
    found = {(name, value): len(reader.get(URL, {name: value}).json()["results"]) for name, value, _ in FILTERS}
    assert found == {(name, value): count for name, value, count in FILTERS}


def test_a_list_is_filtered_by_what_a_run_belongs_to(running: Running, reader: Any) -> None:
    one, _ = running.start(), running.start()
    for name, value in (
        ("case_id", one.case_id),
        ("definition_id", running.definition.id),
        ("product_id", running.product.id),
        ("org_id", running.organization.id),
    ):
        rows = reader.get(URL, {name: str(value)}).json()["results"]
        assert len(rows) == (1 if name == "case_id" else 2), name
        assert reader.get(URL, {name: str(uuid4())}).json().get("results", []) == [], name


def test_the_runs_of_a_case_are_found_with_those_that_were_superseded(running: Running, reader: Any) -> None:
    old = running.start()
    assert act(running, old, "supersede").status_code == 200
    found = reader.get(URL, {"case_id": str(old.case_id)}).json()["results"]
    assert [row["superseded_by"] for row in found] == [None, found[0]["id"]]


def test_an_unknown_filter_or_value_is_refused(reader: Any) -> None:
    assert reader.get(URL, {"state": "halted"}).json()["type"].endswith("/unknown-parameter")
    for name, value in (("status", "nowhere"), ("case_id", "7"), ("halt_reason", "No Code"), ("page_size", "0")):
        assert reader.get(URL, {name: value}).status_code == 400, name


def test_the_full_state_of_a_run(running: Running, reader: Any) -> None:
    instance = running.start()
    running.answer(instance)
    running.answer(instance)
    found = reader.get(f"{URL}/{instance.id}").json()
    (step,) = found["current_steps"]
    assert (step["step_id"], step["status"], step["attempt"]) == ("ai_review", "in_progress", 1)
    assert step["correlation_id"] == str(running.current(instance).id)  # type: ignore[union-attr]
    assert found["definition_snapshot"] == {
        "definition_id": str(running.definition.id),
        "slug": "derm",
        "version": 1,
        "sha256": instance.definition_sha256,
    }
    assert found["context"]["consent_gate"] == {"granted": True, "missing_types": []}
    assert found["contract"]["state"] == "open"
    assert found["drift"] == []
    (attempt,) = found["governed_attempts"]
    assert (attempt["step_id"], attempt["state"]) == ("ai_review", "approved-for-execution")
    assert found["deadline_at"] > found["started_at"]


def test_every_try_of_a_step_is_a_row_with_what_went_in_and_what_came_out(running: Running, reader: Any) -> None:
    instance = retry_waits(running)
    found = reader.get(f"{URL}/{instance.id}/steps").json()["results"]
    assert [(row["step_id"], row["attempt"], row["status"]) for row in found] == [
        ("consent_gate", 1, "completed"),
        ("image_check", 1, "completed"),
        ("ai_review", 1, "failed"),
        ("ai_review", 2, "pending"),
    ]
    consent, images, first, second = found
    assert consent["input"]["params"] == {"types": ["ai_analysis"]}
    assert consent["input"]["request"] == {"types": ["ai_analysis"], "patient_id": "pat-1"}
    assert consent["output"] == {"granted": True, "missing_types": []}
    assert first["input"]["request"]["images"] == images["output"]["image_ids"]
    assert first["error"]["reason_code"] == "ai_review_failed"
    assert first["governed_attempt"] is not None
    assert first["correlation_id"] != second["correlation_id"]
    assert second["next_eligible_at"] is not None


def test_a_completed_run_names_the_steps_it_did_without_as_skipped(running: Running, reader: Any) -> None:
    instance = in_status(running, "completed")
    found = reader.get(f"{URL}/{instance.id}/steps").json()["results"]
    skipped = {row["step_id"] for row in found if row["status"] == "skipped"}
    assert skipped == {"customer_review", "halt_consent", "halt_images", "halt_ai"}
    assert all(row["attempt"] == 0 and row["id"] is None for row in found if row["status"] == "skipped")
    assert {row["status"] for row in found} == {"completed", "skipped"}


def test_a_run_that_goes_on_names_no_step_as_skipped(running: Running, reader: Any) -> None:
    instance = running.start()
    assert [row["step_id"] for row in reader.get(f"{URL}/{instance.id}/steps").json()["results"]] == ["consent_gate"]


def test_the_log_has_every_input_raw_and_pages(running: Running, reader: Any) -> None:
    instance = in_status(running, "halted")
    late = running.report(instance, "consent.check.completed", {"granted": True, "missing_types": []})
    first = reader.get(f"{URL}/{instance.id}/events", {"page_size": 2}).json()
    assert [(row["event_type"], row["outcome"], row["processed"]) for row in first["results"]] == [
        ("consent.check.completed", "late", False),
        ("consent.check.completed", "advanced", True),
    ]
    assert first["results"][0]["event_id"] == str(late.event.event_id)
    assert first["results"][0]["envelope"]["payload"] == {"granted": True, "missing_types": []}
    last = reader.get(first["next"]).json()["results"]
    assert [(row["event_type"], row["number"]) for row in last] == [("case.created", 1)]


def test_interventions_are_listed_with_who_and_why(running: Running, reader: Any) -> None:
    instance = running.start()
    alice = running.cast.session(running.cast.operator)
    act(running, instance, "halt", alice, reason_code="incident_response", note="Ticket 17")
    act(running, instance, "resume")
    second, first = reader.get(f"{URL}/{instance.id}/interventions").json()["results"]
    assert (first["action"], first["performed_by"], first["performed_by_kind"]) == ("halt", "alice", "person")
    assert (first["reason_code"], first["note"]) == ("incident_response", "Ticket 17")
    assert (second["action"], second["performed_by_kind"]) == ("resume", "service")


def test_drift_is_visible_in_the_state_of_a_client_driven_run(running: Running, reader: Any) -> None:
    instance = running.start(orchestration_mode="client_driven")
    running.report(instance, "ai_review.completed", {"confidence": 0.9, "diagnoses": [], "raw_response_id": "r-1"})
    (seen,) = reader.get(f"{URL}/{instance.id}").json()["drift"]
    assert (seen["drift"], seen["event_type"]) == ("skipped_gate", "ai_review.completed")


@pytest.mark.parametrize("page", PAGES)
def test_every_page_of_a_run_is_for_its_own_organization(running: Running, page: str) -> None:
    cast, instance = running.cast, running.start()
    url = f"{URL}/{instance.id}{page}"
    for client in (cast.api(READ), cast.api("orchestrator:read"), *(cast.session(p) for p in insiders(cast))):
        assert client.get(url).status_code == 200
    before = violations()
    for stranger in (cast.api(READ, organization=cast.other), cast.session(cast.other_operator)):
        assert stranger.get(url).status_code == 404
    assert violations() == [*before, "cross_tenant", "cross_tenant"]
    assert cast.api("orchestrator:write").get(url).status_code == 403
    assert cast.session(cast.nobody).get(url).status_code == 403
    assert cast.api(READ).get(f"{URL}/{uuid4()}{page}").status_code == 404


def insiders(cast: Cast) -> list[Any]:
    return [cast.operator, cast.auditor, cast.reviewer, cast.owner]


def test_a_stranger_s_list_is_empty_and_an_administrator_may_name_the_organization(running: Running) -> None:
    cast = running.cast
    running.start()
    assert cast.api(READ, organization=cast.other).get(URL).json()["results"] == []
    named = {"org_id": str(running.organization.id)}
    assert cast.api(READ, organization=cast.other).get(URL, named).status_code == 404
    admin = cast.api(READ, "orchestrator:admin", organization=cast.other)
    assert len(admin.get(URL, named).json()["results"]) == 1


def test_reading_costs_the_same_number_of_queries_however_long_the_run(
    running: Running, reader: Any, django_assert_max_num_queries: Any
) -> None:
    instance = running.start()
    for _ in range(6):
        act(running, instance, "halt")
        act(running, instance, "resume")
    with every_tenant(), django_assert_max_num_queries(12):
        assert reader.get(f"{URL}/{instance.id}").status_code == 200
