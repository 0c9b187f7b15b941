"""Interventions (S4 5.9): every action from every status, what it leaves behind, and that a pause really stops."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.utils import timezone

from attempts.lifecycle.models import Attempt
from attempts.quarantine.models import QuarantineCase
from attempts.reviews.models import Review
from attempts.reviews.services.human_review import human_review_decide
from attempts.reviews.states import VoteVerdict
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.workflows.run_support import (
    ACTIONS,
    INTERVENE,
    URL,
    act,
    entries,
    full,
    in_status,
    interventions,
    log,
    retry_waits,
    steps,
    violations,
)
from tests.workflows.running import Running
from workflows.engine.interventions import LEGAL
from workflows.runs.models import Nudge, WorkflowInstance
from workflows.runs.services.replay import instance_replay
from workflows.runs.services.signal_follow import signal_follow
from workflows.runs.states import InstanceStatus

AFTER = {"halt": "halted", "cancel": "cancelled", "supersede": "cancelled", "resume": "running"}


@pytest.fixture
def running(cast: Cast) -> Running:
    return Running(cast)


def replays(instance: WorkflowInstance) -> bool:
    with every_tenant():
        return instance_replay(instance=WorkflowInstance.objects.get(id=instance.id)).differences == []


@pytest.mark.parametrize("status", list(InstanceStatus))
def test_every_action_from_every_status(running: Running, status: str) -> None:
    """The table of the engine says which are legal; everything else is refused and changes nothing."""
    client = running.cast.api(INTERVENE)
    for action in ACTIONS:
        instance = in_status(running, status)
        answer = act(running, instance, action, client)
        legal = status in LEGAL[action.replace("-", "_")]
        if action == "retry-step" and status == "running":  # legal, but its step is under way
            legal = False
        assert answer.status_code == (200 if legal else 409), (action, answer.json())
        now = running.fresh(instance)
        if not legal:
            assert answer.json()["type"].endswith("/intervention-not-legal"), action
            assert (now.state, now.events) == (status, instance.events), action
            continue
        said = answer.json()
        assert (said["action"], said["before_state"]["status"]) == (action.replace("-", "_"), status)
        assert said["after_state"]["status"] == said["instance"]["status"] == now.state
        assert now.state == AFTER.get(action, "running"), action
        assert replays(now), action


def test_what_was_done_is_on_record_with_the_state_before_and_after(running: Running) -> None:
    instance = running.start()
    alice = running.cast.session(running.cast.operator)
    act(running, instance, "halt", alice, reason_code="incident_response", note="Ticket 17")
    (done,) = interventions(instance)
    assert done.before_state == {
        "status": "running",
        "halt_reason": "",
        "halt_step_id": "",
        "step": {"step_id": "consent_gate", "attempt": 1, "status": "in_progress"},
    }
    assert done.after_state == {
        "status": "halted",
        "halt_reason": "incident_response",
        "halt_step_id": "consent_gate",
        "step": None,
    }
    assert done.note is not None
    assert done.note.text == "Ticket 17"
    entry = entries(instance.id)[-1]
    assert (entry.action, entry.actor_kind, entry.reason_code) == ("workflow.intervened", "person", "incident_response")
    assert entry.payload["note_sha256"] == done.note.sha256
    assert "Ticket 17" not in str(entry.payload)
    told = running.requests(instance)[-1]
    assert (told.event_type, told.envelope["payload"]["action"]) == ("workflow.intervened", "halt")


def test_a_reason_is_required_known_and_sometimes_needs_a_note(running: Running) -> None:
    instance, client = running.start(), running.cast.api(INTERVENE)
    url = f"{URL}/{instance.id}/halt"
    missing = client.post(url, {}, format="json").json()
    assert (missing["status"], missing["errors"][0]["pointer"]) == (400, "/reason_code")
    unknown = client.post(url, {"reason_code": "because"}, format="json").json()
    assert unknown["status"] == 400
    assert "planned_maintenance" in unknown["errors"][0]["message"]
    assert "because" not in str(unknown)
    bare = client.post(url, {"reason_code": "incident_response"}, format="json")
    assert (bare.status_code, "note" in bare.json()["detail"]) == (400, True)
    typed = client.post(url, {"reason_code": "planned_maintenance", "notes": "x"}, format="json")
    assert typed.json()["errors"][0]["rule"] == "unknown_field"
    leaked = client.post(url, {"reason_code": "planned_maintenance", "note": "mail jane@example.com"}, format="json")
    assert leaked.status_code == 422
    assert "jane" not in leaked.content.decode()
    assert running.fresh(instance).state == "running"
    assert interventions(instance) == []


def test_a_halt_reason_of_the_vocabulary_may_be_given_too(running: Running) -> None:
    instance = running.start()
    assert act(running, instance, "halt", reason_code="image_quality").status_code == 200
    assert running.fresh(instance).halt_reason == "image_quality"


def test_a_completion_after_a_halt_is_kept_as_late_and_does_not_advance(running: Running) -> None:
    instance = running.start()
    step = running.current(instance)
    assert step is not None
    act(running, instance, "halt")
    late = running.report(
        instance, "consent.check.completed", {"granted": True, "missing_types": []}, correlation_id=step.id
    )
    assert late.event.outcome == "late"
    now = running.fresh(instance)
    assert (now.state, "consent_gate" in now.context) == ("halted", False)
    act(running, instance, "resume")
    stale = running.report(
        instance, "consent.check.completed", {"granted": True, "missing_types": []}, correlation_id=step.id
    )
    assert stale.event.outcome == "stale"  # of the try before the pause
    assert steps(instance) == [("consent_gate", 1, "cancelled"), ("consent_gate", 2, "in_progress")]
    running.answer(instance)
    assert steps(instance)[-1] == ("image_check", 1, "in_progress")
    assert replays(instance)


def test_halting_a_governed_step_leaves_its_outcome_to_a_person(running: Running) -> None:
    instance = running.start()
    running.answer(instance)
    running.answer(instance)
    act(running, instance, "halt")
    with every_tenant():
        assert Attempt.objects.get().reason_code == "outcome_unknown"
        assert QuarantineCase.objects.get().category == "outcome_unknown"


def test_retrying_a_step_makes_a_new_request_with_a_new_correlation(running: Running) -> None:
    instance = running.start()
    running.answer(instance)
    running.answer(instance)
    running.report(instance, "ai_review.failed", {"reason_code": "image_quality", "retryable": False})
    assert running.fresh(instance).state == "halted"
    answer = act(running, instance, "retry-step").json()
    assert answer["after_state"]["step"] == {"step_id": "ai_review", "attempt": 2, "status": "in_progress"}
    asked = [row for row in running.requests(instance) if row.event_type == "ai_review.requested"]
    assert len({row.envelope["correlation_id"] for row in asked}) == 2
    running.answer(instance, confidence=0.95)
    assert running.fresh(instance).state == "completed"


def test_a_retry_that_waits_for_its_time_can_be_taken_up_now(running: Running) -> None:
    instance = retry_waits(running)
    assert act(running, instance, "retry-step").status_code == 200
    assert steps(instance)[-1] == ("ai_review", 2, "in_progress")
    assert replays(instance)


def test_nothing_goes_on_after_the_deadline_but_it_can_be_superseded(running: Running) -> None:
    instance = in_status(running, "halted")
    with every_tenant():
        WorkflowInstance.objects.filter(id=instance.id).update(deadline_at=timezone.now() - timedelta(seconds=1))
    for action in ("resume", "retry-step"):
        answer = act(running, instance, action)
        assert (answer.status_code, "deadline" in answer.json()["detail"]) == (409, True)
    assert act(running, instance, "supersede").status_code == 200


def test_superseding_runs_the_case_anew_under_the_latest_definition(running: Running) -> None:
    old = in_status(running, "halted")
    newer = running.publish("ai_only")
    answer = act(running, old, "supersede").json()
    new = running.instance(old.case_id)
    assert answer["instance"]["superseded_by"] == str(new.id)
    assert answer["instance"]["cancelled_reason"] == f"superseded_by:{new.id}"
    assert (new.definition_id, new.state, new.context["patient_id"]) == (newer.id, "running", "pat-1")
    assert running.fresh(old).state == "cancelled"
    late = running.send(
        running.envelope(
            "consent.check.completed",
            {"granted": True, "missing_types": []},
            case_id=old.case_id,
            correlation_id=UUID(str(running.current(new).id)),  # type: ignore[union-attr]
        )
    )
    assert (late.event.instance_id, late.event.outcome) == (new.id, "advanced")
    assert replays(old)
    assert replays(new)


def test_superseding_without_an_active_definition_is_refused_and_changes_nothing(running: Running) -> None:
    instance = running.start()
    publisher = running.cast.session(running.cast.operator)
    archived = publisher.post(f"/api/v1/workflow-definitions/{running.definition.id}/archive", {}, format="json")
    assert archived.status_code == 200
    assert act(running, instance, "supersede").status_code == 409
    assert running.fresh(instance).state == "running"
    assert interventions(instance) == []


def test_cancelling_ends_a_review_that_waits(running: Running) -> None:
    instance = in_status(running, "waiting_approval")
    act(running, instance, "cancel")
    with every_tenant():
        assert Review.objects.get().status == "canceled"
    assert running.fresh(instance).completed_at is not None


def test_an_answer_to_the_review_before_a_pause_does_not_answer_the_one_after_it(running: Running) -> None:
    """The reviewer was faster than the halt, but the engine heard of it only after the run was resumed."""
    instance = in_status(running, "waiting_approval")
    confirm(running)
    act(running, instance, "halt")
    act(running, instance, "resume")
    with every_tenant():
        (signal,) = Nudge.objects.all()
        signal_follow(signal_id=signal.id, at=timezone.now(), region="US")
    assert running.fresh(instance).state == "waiting_approval"
    assert log(instance)[-1] == ("human_review.completed", "stale")
    assert replays(instance)


def confirm(running: Running) -> None:
    with every_tenant():
        review = Review.objects.get(status="requested")
        human_review_decide(
            actor=running.cast.actor(running.cast.reviewer, [running.organization]),
            at=timezone.now(),
            review_id=review.id,
            verdict=VoteVerdict.CONFIRM,
            action_digest=review.action_digest,
        )


@pytest.mark.parametrize("action", ACTIONS)
def test_only_operators_and_keys_that_may_intervene_do(running: Running, action: str) -> None:
    cast, instance = running.cast, in_status(running, "halted")
    outside: list[tuple[Any, int]] = [
        (cast.api(INTERVENE, organization=cast.other), 404),
        (cast.session(cast.other_operator), 404),
        (cast.api("orchestrator:read", "orchestrator:write"), 403),
        (cast.session(cast.auditor), 403),
        (cast.session(cast.reviewer), 403),
        (cast.session(cast.nobody), 403),
    ]
    for client, status in outside:
        assert act(running, instance, action, client).status_code == status
    assert violations() == ["cross_tenant", "cross_tenant"]
    assert (running.fresh(instance).state, interventions(instance)) == ("halted", [])
    if action != "halt":
        assert act(running, instance, action, cast.session(cast.operator)).status_code == 200


@pytest.mark.parametrize("action", ["resume", "retry-step"])
def test_a_halted_run_goes_on_only_when_its_organization_has_a_place(running: Running, action: str) -> None:
    halted = in_status(running, "halted")
    other = running.start()
    full(running)
    answer = act(running, halted, action)
    assert (answer.status_code, answer.json()["type"].rsplit("/")[-1]) == (409, "no-place-free")
    assert (running.fresh(halted).events, interventions(halted)) == (halted.events, [])
    assert act(running, other, "cancel").status_code == 200
    assert act(running, halted, action).status_code == 200
    assert running.fresh(halted).state == "running"
