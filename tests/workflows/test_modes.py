"""Active and client-driven (S4 1.4, 5.7); events that are stale, late or nobody's; room for runs (S3 3.4)."""

from functools import cached_property
from typing import Any
from uuid import uuid4

import pytest
from django.utils import timezone
from structlog.testing import capture_logs

from attempts.lifecycle.models import Attempt
from attempts.reviews.models import Review
from governance.tenancy.models import Organization
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.factories import OrganizationFactory
from tests.workflows.running import ANSWERS
from tests.workflows.world import World, brief, changed, check_record, people
from workflows.definitions.services.change import definition_archive
from workflows.events.models import WorkflowEvent
from workflows.runs.models import WorkflowInstance
from workflows.runs.services import dispatch as hand_out
from workflows.runs.services.intervene import InterventionOrder, instance_supersede
from workflows.runs.states import InterventionAction

pytestmark = pytest.mark.django_db
NAME = "ai_with_confidence_escalation"
CONSENT, IMAGES = ANSWERS["consent.check.requested"], ANSWERS["case.images_check.requested"]
AI, PERSON = ANSWERS["ai_review.requested"], ANSWERS["human_review.requested"]


def client_driven(cast: Cast, **kwargs: Any) -> World:
    return World(cast, changed(NAME) | {"default_mode": "client_driven"}, **kwargs)


def observed(world: World, instance: WorkflowInstance, *answers: tuple[str, dict[str, Any]]) -> list[tuple[str, str]]:
    """What the log says of them; correlation ids are the client's own business."""
    found = [world.tell(instance, *answer, correlation_id=f"client-{number}") for number, answer in enumerate(answers)]
    return [(one.event.outcome, one.event.drift) for one in found]


@pytest.mark.parametrize("opened", [True, False], ids=["contract open", "contract closed"])
def test_a_client_driven_run_is_only_observed(cast: Cast, opened: bool) -> None:
    world = client_driven(cast, opened=opened)
    instance = world.start()
    assert (instance.mode, instance.state) == ("client_driven", "running")
    assert observed(world, instance, CONSENT, IMAGES, AI, PERSON) == [("advanced", "")] * 4
    assert world.fresh(instance).state == "completed"
    assert [row.event_type for row in world.requests(instance)] == ["workflow.started", "workflow.completed"]
    with every_tenant():
        assert not Attempt.objects.exists()
        assert not Review.objects.exists()
    check_record(world, instance)


@pytest.mark.parametrize(
    ("default", "asked", "mode"),
    [
        ("active", None, "active"),
        ("active", "client_driven", "client_driven"),
        ("client_driven", None, "client_driven"),
        ("client_driven", "active", "active"),
    ],
)
def test_the_case_decides_the_mode_then_the_definition(cast: Cast, default: str, asked: str | None, mode: str) -> None:
    world = World(cast, changed(NAME) | {"default_mode": default})
    said = {"orchestration_mode": asked} if asked else {}
    assert world.start(**said).mode == mode


def test_a_superseding_run_is_driven_as_the_case_asked_or_as_the_new_definition_says(cast: Cast) -> None:
    world = client_driven(cast)
    asked, default = world.start(orchestration_mode="client_driven"), world.start()
    world.publish(changed(NAME))
    for instance, mode in ((asked, "client_driven"), (default, "active")):
        for _ in range(2):  # also when the superseding run is superseded
            with every_tenant():
                _, instance = instance_supersede(
                    instance_id=instance.id,
                    order=InterventionOrder(InterventionAction.SUPERSEDE, "data_correction"),
                    actor=world.operator,
                    at=timezone.now(),
                    region="US",
                )
            assert instance.mode == mode
            assert instance.context["patient_id"] == "pat-1"


def test_a_gate_that_was_skipped_is_visible_and_what_came_early_counts_when_its_turn_comes(cast: Cast) -> None:
    world = client_driven(cast)
    instance = world.start()
    assert observed(world, instance, AI, IMAGES) == [("drift", "skipped_gate")] * 2
    assert set(world.fresh(instance).early) == {AI[0], IMAGES[0]}
    assert observed(world, instance, CONSENT) == [("advanced", "wrong_order")]
    found = world.fresh(instance)
    assert (world.current(instance).step_id, found.early) == ("customer_review", {})
    assert found.context["ai_review"]["confidence"] == 0.62
    with every_tenant():
        assert WorkflowEvent.objects.filter(instance=instance).exclude(drift="").count() == 3
    check_record(world, instance)


def test_what_nobody_asked_for_is_drift_in_both_modes(cast: Cast) -> None:
    world = client_driven(cast)
    status = ANSWERS["case.set_status.requested"]
    driven, active = world.start(), world.start(orchestration_mode="active")
    assert observed(world, driven, status) == [("drift", "unrequested_completion")]
    assert observed(world, active, status, CONSENT) == [("drift", "unrequested_completion")] * 2
    for instance in (driven, active):
        assert world.current(instance).step_id == "consent_gate"
        check_record(world, instance)


def test_the_same_event_again_changes_nothing_and_another_about_a_done_step_is_stale(cast: Cast) -> None:
    world = World(cast, NAME)
    instance = world.start()
    asked = world.current(instance)
    envelope = world.envelope(*CONSENT, case_id=instance.case_id, correlation_id=asked.id)
    assert not world.send(envelope).duplicate
    assert world.send(envelope).duplicate
    stale = world.tell(instance, *CONSENT, correlation_id=asked.id)
    assert (stale.event.outcome, world.current(instance).step_id) == ("stale", "image_check")
    assert world.log(instance) == [
        ("case.created", "advanced"), ("consent.check.completed", "advanced"), ("consent.check.completed", "stale"),
    ]  # fmt: skip
    check_record(world, instance)


@pytest.mark.parametrize("end", ["halt", "cancel"])
def test_what_comes_after_the_end_is_kept_as_late(cast: Cast, end: str) -> None:
    world = World(cast, NAME)
    instance = world.start()
    asked = world.current(instance)
    world.intervene(instance, end)
    before = world.fresh(instance)
    late = world.tell(instance, *CONSENT, correlation_id=asked.id)
    after = world.fresh(instance)
    assert late.event.outcome == "late"
    assert (after.state, after.context, after.events) == (before.state, before.context, before.events + 1)
    check_record(world, instance)


def test_an_output_that_breaks_its_contract_halts_and_is_nowhere_kept(cast: Cast) -> None:
    world = World(cast, brief())
    instance = world.start()
    world.tell(instance, AI[0], {"confidence": "very", "diagnoses": [], "raw_response_id": "Patient Jane"})
    assert world.halted(instance) == "output_contract_drift"
    with every_tenant():
        row = WorkflowEvent.objects.get(instance=instance, number=2)
        assert "payload" not in row.envelope
        assert Attempt.objects.get().state == "failed-quarantined"
    assert "ai_review" not in world.fresh(instance).context
    check_record(world, instance)


def test_a_case_that_is_told_twice_runs_once(cast: Cast) -> None:
    world = World(cast, NAME)
    instance = world.start()
    again = world.send(world.envelope("case.created", {"patient_id": "pat-1"}, case_id=instance.case_id))
    assert (again.event.outcome, again.event.instance_id) == ("ignored", instance.id)
    with every_tenant():
        assert WorkflowInstance.objects.count() == 1
    assert world.fresh(instance).events == 1


def test_archiving_a_definition_stops_new_runs_and_not_those_under_way(cast: Cast) -> None:
    world = World(cast, brief())
    instance = world.start()
    with every_tenant():
        definition_archive(actor=world.operator, at=timezone.now(), definition_id=world.definition.id)
    kept = world.send(world.envelope("case.created", {"patient_id": "pat-2"}, case_id=uuid4()))
    assert (kept.event.outcome, kept.event.instance_id) == ("unmatched", None)
    world.complete(instance)
    assert world.fresh(instance).state == "completed"
    check_record(world, instance)


@pytest.mark.parametrize("cap", ["max_concurrency", "max_runs_per_min"])
def test_over_its_organizations_caps_a_run_queues_and_starts_when_there_is_room(cast: Cast, cap: str) -> None:
    world = World(cast, NAME)
    world.caps(**{cap: 1})
    first, second, third = world.start(), world.start(), world.start()
    assert (first.state, second.state, third.state) == ("running", "queued", "queued")
    assert world.requests(second) == []
    assert world.tick("instances_dispatch") == 0
    world.caps(**{cap: 2 if cap == "max_concurrency" else 600})
    assert world.tick("instances_dispatch") == (1 if cap == "max_concurrency" else 2)
    found = world.fresh(second)
    assert found.started_at is not None
    assert (found.state, found.started_at > found.created_at) == ("running", True)
    assert [row.action for row in world.ledger(second)] == ["workflow.queued", "workflow.started"]
    assert world.log(second) == [("case.created", "ignored"), ("instance.started", "advanced")]
    world.complete(second)
    check_record(world, second)


def test_waiting_for_a_person_takes_no_room(cast: Cast) -> None:
    world = World(cast, people())
    world.caps(max_concurrency=1)
    assert [world.start().state for _ in range(3)] == ["waiting_approval"] * 3


class Neighbour(Cast):
    """Another clinic, with people of the same names."""

    @cached_property
    def organization(self) -> Organization:
        return OrganizationFactory(slug="neighbour", name="Neighbour")


def test_queued_runs_start_fairly_by_capacity(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten wait in each of two clinics, and a tick that starts eight: three times the capacity, three times the runs."""
    clinics = [World(cast, NAME), World(Neighbour(), NAME)]
    for world in clinics:
        world.caps(max_concurrency=0)
    lines = [[world.start() for _ in range(10)] for world in clinics]
    clinics[0].caps(capacity_units=3, max_concurrency=50)
    clinics[1].caps(capacity_units=1, max_concurrency=50)
    monkeypatch.setattr(hand_out, "MOST_PER_TICK", 8)
    assert clinics[0].tick("instances_dispatch") == 8
    started = [[world.fresh(one).state for one in line] for world, line in zip(clinics, lines, strict=True)]
    assert [one.count("running") for one in started] == [6, 2]
    assert started[0] == ["running"] * 6 + ["queued"] * 4, "in the order in which they came"


def test_a_queued_run_that_cannot_be_started_does_not_keep_the_others_waiting(cast: Cast) -> None:
    world = World(cast, NAME)
    world.caps(max_concurrency=0)
    first, second = world.start(), world.start()
    with every_tenant():
        WorkflowInstance.objects.filter(id=first.id).update(events=0)  # its next input has a number that is taken
    world.caps(max_concurrency=50)
    with capture_logs() as logs:
        assert world.tick("instances_dispatch") == 1
    assert [one["row_id"] for one in logs if one["event"] == "tick_row_failed"] == [str(first.id)]
    assert (world.fresh(first).state, world.fresh(second).state) == ("queued", "running")
    with every_tenant():
        WorkflowInstance.objects.filter(id=first.id).update(events=1)
