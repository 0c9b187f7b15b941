"""Kept events are driven again by people: once, on record, and what becomes of them is another event."""

from typing import Any
from uuid import UUID, uuid4

import pytest

from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.governance.support import in_parallel
from tests.workflows.run_support import EVENTS, INTERVENE, READ, entries, log, steps, violations
from tests.workflows.running import Running
from workflows.events.models import WorkflowEvent
from workflows.runs.models import WorkflowInstance
from workflows.runs.services.replay import instance_replay

GRANTED = {"granted": True, "missing_types": []}


@pytest.fixture
def running(cast: Cast) -> Running:
    return Running(cast)


def kept(running: Running, case_id: UUID | None = None, name: str = "case.created", **payload: Any) -> WorkflowEvent:
    """An event that finds no definition: its product exists only afterwards, as it were."""
    given = payload or {"patient_id": "pat-1"}
    event = running.send(running.envelope(name, given, case_id=case_id or uuid4())).event
    assert event.outcome == "unmatched"
    return event


def redrive(client: Any, event: WorkflowEvent) -> Any:
    return client.post(f"{EVENTS}/{event.id}/redrive", format="json")


def archive(running: Running) -> None:
    alice = running.cast.session(running.cast.operator)
    url = f"/api/v1/workflow-definitions/{running.definition.id}/archive"
    assert alice.post(url, {}, format="json").status_code == 200


def test_a_case_that_came_too_early_starts_once_there_is_a_definition(running: Running) -> None:
    archive(running)
    event = kept(running)
    running.publish("ai_only", slug="derm")
    alice = running.cast.session(running.cast.operator)
    answer = redrive(alice, event)
    assert answer.status_code == 200
    said = answer.json()
    instance = running.instance(event.case_id)  # type: ignore[arg-type]
    assert (said["outcome"], said["instance_id"], said["event_id"]) == ("advanced", str(instance.id), None)
    assert instance.state == "running"
    (entry,) = entries(event.id)
    assert (entry.action, entry.actor_kind) == ("workflow.event_redriven", "person")
    assert (entry.payload["made"], entry.payload["instance"]) == (said["id"], str(instance.id))
    with every_tenant():
        assert WorkflowEvent.objects.get(id=said["id"]).redrives_id == event.id
        assert instance_replay(instance=instance).differences == []
    running.answer(instance)
    assert steps(instance)[-1] == ("image_check", 1, "in_progress")


def test_an_answer_that_came_before_its_case_finds_the_run_afterwards(running: Running) -> None:
    """Client-driven: the client was faster than the case's own event."""
    case_id = uuid4()
    event = kept(running, case_id, "consent.check.completed", **GRANTED)
    instance = running.start(case_id=case_id, orchestration_mode="client_driven")
    said = redrive(running.cast.api(INTERVENE), event).json()
    assert (said["outcome"], said["instance_id"]) == ("advanced", str(instance.id))
    assert steps(instance) == [("consent_gate", 1, "completed"), ("image_check", 1, "in_progress")]


def test_an_event_is_driven_again_once(running: Running) -> None:
    event = kept(running, name="consent.check.completed", **GRANTED)
    client, reader = running.cast.api(INTERVENE), running.cast.api(READ)
    first = redrive(client, event).json()
    assert first["outcome"] == "unmatched"  # still nothing takes it: kept again, as another event
    again = redrive(client, event)
    assert (again.status_code, again.json()["type"].endswith("/wrong-state")) == (409, True)
    assert [row["id"] for row in reader.get(EVENTS, {"redriven": "false"}).json()["results"]] == [first["id"]]
    (row,) = reader.get(EVENTS, {"redriven": "true"}).json()["results"]
    assert (row["id"], row["redriven_by"]) == (str(event.id), first["id"])
    with every_tenant():
        assert redrive(client, WorkflowEvent.objects.get(id=first["id"])).status_code == 200


def test_only_unmatched_events_are_driven_again(running: Running) -> None:
    instance = running.start()
    with every_tenant():
        event = WorkflowEvent.objects.get(instance=instance)
    answer = redrive(running.cast.api(INTERVENE), event)
    assert answer.status_code == 409
    assert log(instance) == [("case.created", "advanced")]


def test_who_may_not_intervene_may_not_drive_again(running: Running) -> None:
    event, cast = kept(running, name="consent.check.completed", **GRANTED), running.cast
    for client in (cast.api(READ, "orchestrator:write"), cast.session(cast.auditor), cast.session(cast.nobody)):
        assert redrive(client, event).status_code == 403
    for client in (cast.api(INTERVENE, organization=cast.other), cast.session(cast.other_operator)):
        assert redrive(client, event).status_code == 404
    assert violations() == ["cross_tenant", "cross_tenant"]
    assert cast.api(INTERVENE).post(f"{EVENTS}/{uuid4()}/redrive").status_code == 404
    with every_tenant():
        assert WorkflowEvent.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_two_people_at_once_drive_it_once() -> None:
    cast = Cast()
    running = Running(cast)
    clients = [cast.session(cast.operator), cast.session(cast.person("anna", "operator"))]
    for _ in range(10):
        event = kept(running, name="consent.check.completed", **GRANTED)
        answers = in_parallel(*[lambda c=client: redrive(c, event).status_code for client in clients])  # noqa: B023
        assert sorted(answers) == [200, 409]
        with every_tenant():
            assert WorkflowEvent.objects.filter(redrives=event).count() == 1
        assert [entry.action for entry in entries(event.id)] == ["workflow.event_redriven"]


@pytest.mark.django_db(transaction=True)
def test_driving_a_case_again_while_it_is_announced_anew_starts_one_run() -> None:
    cast = Cast()
    running = Running(cast)
    module, alice = cast.api("orchestrator:write"), cast.session(cast.operator)
    assert running.module
    for _ in range(8):
        archive(running)
        event = kept(running)
        running.definition = running.publish("ai_only")
        anew = running.envelope("case.created", {"patient_id": "pat-1"}, case_id=event.case_id)  # type: ignore[arg-type]
        answers = in_parallel(
            lambda event=event: redrive(alice, event).status_code,
            lambda anew=anew: module.post(EVENTS, anew, format="json").status_code,
        )
        assert answers == [200, 202]
        with every_tenant():
            assert WorkflowInstance.objects.filter(case_id=event.case_id).count() == 1
