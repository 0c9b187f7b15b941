"""Every side effect on the way passes the hold point: closed, stopped, held, refused, too many, too fast."""

import time
from typing import Any
from uuid import UUID

import pytest
from django.utils import timezone

from attempts.execution.services.queue import queue_dispatch
from attempts.lifecycle.models import Attempt
from attempts.reviews.models import Review
from attempts.reviews.services.clock import reviews_expire
from governance.contracts.models import Contract
from governance.contracts.services.contracts import contract_change, contract_open, contract_suspend
from governance.shutdown.services import shutdown_engage, shutdown_release
from governance.shutdown.states import ShutdownScope
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.governed import ALLOW, DENY, HOLD, approve
from tests.workflows.running import ANSWERS
from tests.workflows.world import DONE, World, ago, brief, check_record, people
from workflows.definitions.rules.contract_terms import PER_MINUTE
from workflows.runs.models import Nudge, WorkflowInstance, WorkflowStep
from workflows.runs.selectors.locked import definition_of

pytestmark = pytest.mark.django_db


def open_up(world: World, **changes: dict[str, Any]) -> None:
    """The owners approve and an operator opens, perhaps with other documents than the definition asked for."""
    contract = contract_of(world)
    with every_tenant():
        if changes:
            before = {area.area: area.document for area in contract.documents.all()}
            documents = {area: before[area] | change for area, change in changes.items()}
            contract_change(actor=world.operator, at=timezone.now(), contract_id=contract.id, documents=documents)
        approve(world.cast, contract)
        contract_open(actor=world.operator, at=timezone.now(), contract_id=contract.id)


def contract_of(world: World) -> Contract:
    with every_tenant():
        return Contract.objects.get(id=world.definition.contract_id)


def suspend(world: World) -> None:
    with every_tenant():
        contract_suspend(
            actor=world.operator,
            at=timezone.now(),
            contract_id=contract_of(world).id,
            reason_code="planned_maintenance",
        )


def reopen(world: World) -> None:
    with every_tenant():
        contract_open(actor=world.operator, at=timezone.now(), contract_id=contract_of(world).id)


def shut_down(world: World) -> UUID:
    with every_tenant():
        return shutdown_engage(
            actor=world.operator,
            at=timezone.now(),
            scope=ShutdownScope.ORGANIZATION,
            organization_id=world.organization.id,
            reason_code="incident_response",
            note="Ticket 17",
        ).id


def release(world: World, shutdown_id: UUID) -> None:
    second = world.cast.actor(world.cast.person("second", "operator"), [world.organization])
    with every_tenant():
        shutdown_release(actor=second, at=timezone.now(), shutdown_id=shutdown_id)


def attempt_of(world: World, instance: WorkflowInstance) -> Attempt:
    with every_tenant():
        steps = WorkflowStep.objects.filter(instance=instance, governed_attempt__isnull=False)
        return Attempt.objects.get(id=steps.order_by("number").values_list("governed_attempt", flat=True)[::1][-1])


@pytest.mark.parametrize("document", ["ai_only", brief()], ids=["a check first", "a side effect first"])
def test_nothing_leaves_before_the_contract_is_open_and_afterwards_a_person_goes_on(cast: Cast, document: Any) -> None:
    world = World(cast, document, opened=False)
    instance = world.start()
    assert world.halted(instance) == "attempt_creation_disabled"
    assert world.sent(instance) == []
    with every_tenant():
        assert not Attempt.objects.exists()
    open_up(world)
    world.intervene(instance, "resume")
    while world.fresh(instance).state == "running":
        world.complete(instance)
    assert world.fresh(instance).state == "completed"
    check_record(world, instance)


@pytest.mark.parametrize("document", ["ai_only", brief()], ids=["a check first", "a side effect first"])
@pytest.mark.parametrize("stop", ["suspended", "shut down"])
def test_what_is_closed_while_nobody_looks_stops_the_next_request(cast: Cast, document: Any, stop: str) -> None:
    world = World(cast, document)
    shutdown = shut_down(world) if stop == "shut down" else None
    if shutdown is None:
        suspend(world)
    instance = world.start()
    expected = "shutdown_engaged" if shutdown else "attempt_creation_disabled"
    assert (world.halted(instance), world.sent(instance)) == (expected, [])
    if shutdown:
        release(world, shutdown)
    else:
        reopen(world)
    world.intervene(instance, "resume")
    assert len(world.sent(instance)) == 1
    assert world.fresh(instance).state == "running"
    check_record(world, instance)


@pytest.mark.parametrize("stop", ["suspended", "shut down"])
def test_a_retry_passes_the_same_hold_point_and_leaves_no_attempt_waiting(cast: Cast, stop: str) -> None:
    world = World(cast, brief(max_retries=1))
    instance = world.start(at=ago(60))
    world.fail(instance, at=ago(50))
    if stop == "shut down":
        shut_down(world)
    else:
        suspend(world)
    world.tick("step_retries_due")
    assert world.halted(instance) == ("shutdown_engaged" if stop == "shut down" else "planned_maintenance")
    assert world.sent(instance) == ["ai_review.requested"]
    assert attempt_of(world, instance).state == "failed-quarantined"
    check_record(world, instance)


def test_a_denied_step_halts_with_the_rules_reason(cast: Cast) -> None:
    world = World(cast, brief(), rules=DENY)
    instance = world.start()
    assert (world.halted(instance), world.sent(instance)) == ("policy_denied", [])
    assert attempt_of(world, instance).state == "preflight-denied"
    check_record(world, instance)


def test_a_held_step_waits_is_released_goes_out_and_completes(cast: Cast) -> None:
    world = World(cast, brief(), rules=HOLD)
    instance = world.start()
    assert (instance.state, world.current(instance).state) == ("waiting_approval", "waiting_approval")
    assert world.sent(instance) == []
    assert world.tick("steps_time_out", at=timezone.now()) == 0
    attempt = world.vote(instance)
    assert world.sent(instance) == []  # released, but nobody has sent it yet
    world.dispatch(attempt)
    world.dispatch(attempt)
    assert (world.fresh(instance).state, world.sent(instance)) == ("running", ["ai_review.requested"])
    assert world.current(instance).timeout_at is not None
    world.complete(instance)
    assert world.fresh(instance).state == "waiting_approval"  # the last step is held too
    world.dispatch(world.vote(instance))
    found = world.fresh(instance)
    assert (found.state, found.writes) == ("completed", 2)
    with every_tenant():
        assert set(Attempt.objects.values_list("state", flat=True)) == {"completed"}
    check_record(world, instance)


def test_a_held_step_that_is_rejected_halts(cast: Cast) -> None:
    world = World(cast, brief(), rules=HOLD)
    instance = world.start()
    world.vote(instance, "reject", reason_code="reviewer_wrong_target")
    assert world.fresh(instance).state == "waiting_approval"
    assert world.follow() == 1
    assert (world.halted(instance), world.sent(instance)) == ("review_rejected", [])
    world.intervene(instance, "resume")  # a person asks once more: a new attempt, held again
    assert (world.fresh(instance).state, world.current(instance).attempt) == ("waiting_approval", 2)
    check_record(world, instance)


def test_a_held_step_on_which_nobody_decides_halts(cast: Cast) -> None:
    world = World(cast, brief(), rules=HOLD)
    instance = world.start(at=ago(4000))  # the rule gives an hour
    with every_tenant():
        assert reviews_expire(at=timezone.now()) == 1
    world.follow()
    assert (world.halted(instance), world.sent(instance)) == ("review_expired", [])
    check_record(world, instance)


def test_a_refusal_that_is_heard_late_does_not_end_the_next_try(cast: Cast) -> None:
    """Rejected; before the engine hears of it a person halts and resumes, and the new try is released and sent."""
    world = World(cast, brief(), rules=HOLD)
    instance = world.start()
    world.vote(instance, "reject", reason_code="reviewer_wrong_target")
    world.intervene(instance, "halt")
    world.intervene(instance, "resume")
    world.dispatch(world.vote(instance))
    assert world.follow() == 1
    assert (world.fresh(instance).state, world.current(instance).state) == ("running", "in_progress")
    assert world.log(instance)[-1] == ("gate.answered", "stale")
    check_record(world, instance)


def test_a_judgement_that_is_heard_late_does_not_answer_the_next_try(cast: Cast) -> None:
    world = World(cast, people())
    instance = world.start()
    world.judge(instance)
    world.intervene(instance, "halt")
    world.intervene(instance, "resume")
    assert world.follow() == 1
    assert (world.fresh(instance).state, world.current(instance).attempt) == ("waiting_approval", 2)
    world.judge(instance, "override", name="rosa")
    world.follow()
    found = world.fresh(instance)
    assert (found.state, found.context["judge"]["decision"]) == ("completed", "override")
    check_record(world, instance)


def test_halting_a_held_step_withdraws_its_attempt_and_cancels_its_review(cast: Cast) -> None:
    world = World(cast, brief(), rules=HOLD)
    instance = world.start()
    review = world.review(instance)
    world.intervene(instance, "halt")
    with every_tenant():
        assert Review.objects.get(id=review.id).status == "canceled"
        assert not Nudge.objects.exists()
    attempt = attempt_of(world, instance)
    assert (attempt.state, attempt.reason_code) == ("preflight-denied", "cancelled_by_caller")
    world.dispatch(attempt.id)
    assert (world.halted(instance), world.sent(instance)) == ("planned_maintenance", [])
    check_record(world, instance)


def test_a_released_step_stays_held_while_the_contract_is_suspended_and_goes_out_when_it_is_open(cast: Cast) -> None:
    world = World(cast, brief(), rules=HOLD)
    instance = world.start()
    attempt = world.vote(instance)
    suspend(world)
    world.dispatch(attempt)
    assert (world.fresh(instance).state, world.sent(instance)) == ("waiting_approval", [])
    reopen(world)
    with every_tenant():  # it is looked at again a little later
        Attempt.objects.filter(id=attempt).update(next_eligible_at=timezone.now())
    world.dispatch(attempt)
    assert (world.fresh(instance).state, world.sent(instance)) == ("running", ["ai_review.requested"])
    check_record(world, instance)


@pytest.mark.parametrize("judged", [False, True], ids=["held governed step", "judgement of our people"])
def test_no_module_can_answer_for_people(cast: Cast, judged: bool) -> None:
    """Whoever knows an instance can compute the correlation id; that must not be worth anything."""
    world = World(cast, people() if judged else brief(), rules=None if judged else HOLD)
    instance = world.start()
    answer = ANSWERS["human_review.requested" if judged else "ai_review.requested"]
    forged = world.tell(instance, *answer)
    assert (forged.event.outcome, forged.event.drift) == ("drift", "unrequested_completion")
    assert world.fresh(instance).state == "waiting_approval"
    check_record(world, instance)


def test_a_declined_judgement_goes_back_to_the_queue_and_another_person_decides(cast: Cast) -> None:
    world = World(cast, people())
    instance = world.start()
    before = world.review(instance)
    world.judge(instance, "decline", reason_code="not_my_speciality")
    assert world.follow() == 0
    after = world.review(instance)
    assert (after.id, after.requeues, world.fresh(instance).state) == (before.id, 1, "waiting_approval")
    world.judge(instance, "confirm", name="rosa")
    world.follow()
    assert world.fresh(instance).state == "completed"
    assert len(world.log(instance)) == 2
    check_record(world, instance)


@pytest.mark.parametrize("rules", [None, HOLD], ids=["allowed", "held and released"])
def test_a_run_sends_no_more_governed_requests_than_its_organization_allows(cast: Cast, rules: Any) -> None:
    world = World(cast, brief(), rules=rules)
    world.caps(max_writes_per_run=1)
    instance = world.start()
    if rules:
        world.dispatch(world.vote(instance))
    world.complete(instance)
    assert world.halted(instance) == "write_cap_reached"
    assert (world.sent(instance), world.fresh(instance).writes) == (["ai_review.requested"], 1)
    world.caps(max_writes_per_run=2)
    world.intervene(instance, "resume")
    if rules:
        world.dispatch(world.vote(instance))
    assert world.fresh(instance).state == "completed"
    check_record(world, instance)


def test_retries_count_as_writes_too(cast: Cast) -> None:
    world = World(cast, brief(max_retries=3, retry_backoff="fixed"))
    world.caps(max_writes_per_run=2)
    instance = world.start(at=ago(60))
    for seconds in (50, 40):
        world.fail(instance, at=ago(seconds))
        world.tick("step_retries_due", at=ago(seconds - 6))
    assert (world.halted(instance), len(world.sent(instance))) == ("write_cap_reached", 2)
    check_record(world, instance)


def test_what_is_over_a_throttle_is_put_off_and_sent_later(cast: Cast) -> None:
    world = World(cast, brief(), opened=False)
    limits = [{"per": per, "limit": 1, "window_seconds": 1} for per in PER_MINUTE]
    open_up(world, throttles_and_misuse={"limits": limits})
    first, second = world.start(), world.start(at=ago(60))
    assert (world.current(first).state, world.current(second).state) == ("in_progress", "pending")
    assert (world.fresh(second).state, world.sent(second)) == ("running", [])
    time.sleep(1.1)  # the throttle's own clock is Valkey's
    assert world.tick("step_retries_due") == 1
    found = world.current(second)
    assert (found.state, found.attempt) == ("in_progress", 1)
    assert world.sent(second) == ["ai_review.requested"]
    time.sleep(1.1)
    world.complete(second)
    assert world.fresh(second).state == "completed"
    check_record(world, second)


STATUS = {"name": "status", "type": "code", "label": "New status", "required": True, "values": ["closed", "open"]}


@pytest.mark.parametrize(("status", "state"), [("closed", "waiting_approval"), ("open", "running"), ("gone", "halted")])
def test_declared_facts_of_what_a_step_sends_are_read_by_rules_and_shown_to_whoever_releases_it(
    cast: Cast, status: str, state: str
) -> None:
    work = {"kind": "set_case_status", "params": {"status": status}, "transitions": {"on_complete": "done"}}
    document = {"name": "Close", "start_step": "close", "steps": {"close": work} | DONE}
    rules = [HOLD[0] | {"when": 'facts.status == "closed"'}, *ALLOW]
    world = World(cast, document, rules=rules, opened=False)
    open_up(world, metadata_boundary={"facts": [STATUS]})
    instance = world.start()
    assert world.fresh(instance).state == state
    if state == "halted":  # a value that was not declared reaches nobody
        assert world.halted(instance) == "metadata_boundary"
        return
    if state == "waiting_approval":
        review = world.review(instance)
        card = cast.session(cast.reviewer).get(f"/api/v1/reviews/{review.id}").json()
        assert [(fact["label"], fact["text"]) for fact in card["asked"]["facts"]] == [("New status", "closed")]
        world.dispatch(world.vote(instance))
    assert world.sent(instance) == ["case.set_status.requested"]
    check_record(world, instance)


def test_what_finds_no_place_waits_for_one_and_goes_out_when_another_ends(cast: Cast) -> None:
    world = World(cast, brief(), opened=False)
    caps = {"per_key": 1, "per_context": None, "per_workflow": 1, "per_tenant": None}
    open_up(world, concurrency_and_locks={"limits": caps, "when_busy": "queue", "queue_timeout_seconds": 600})
    first, second = world.start(), world.start()
    assert (world.fresh(second).state, world.sent(second)) == ("waiting_approval", [])
    with every_tenant():
        assert queue_dispatch() == 0
    world.fail(first, retryable=False)
    with every_tenant():
        assert queue_dispatch() == 1
    world.dispatch(world.current(second).governed_attempt)
    assert (world.fresh(second).state, world.sent(second)) == ("running", ["ai_review.requested"])
    check_record(world, second)


def test_a_step_that_finds_no_slot_queues_also_where_the_contract_refuses_when_busy(cast: Cast) -> None:
    """Nobody would hear the refusal: one attempt waits, instead of another attempt and decision every few seconds."""
    world = World(cast, brief(), opened=False)
    caps = {"per_key": 1, "per_context": None, "per_workflow": 1, "per_tenant": None}
    open_up(world, concurrency_and_locks={"limits": caps, "when_busy": "deny"})
    first, second = world.start(), world.start()
    assert (world.fresh(second).state, world.sent(second)) == ("waiting_approval", [])
    for _ in range(3):
        world.tick("step_retries_due")
    with every_tenant():
        assert queue_dispatch() == 0
        assert Attempt.objects.count() == 2
    world.fail(first, retryable=False)
    with every_tenant():
        assert queue_dispatch() == 1
    world.dispatch(world.current(second).governed_attempt)
    assert (world.fresh(second).state, world.sent(second)) == ("running", ["ai_review.requested"])
    check_record(world, second)


def test_runs_of_a_definition_that_was_replaced_and_archived_go_on_as_they_began(cast: Cast) -> None:
    world = World(cast, brief())
    old = world.start()
    world.publish(people())  # another version under the same slug, with other steps
    new = world.start()
    assert (world.current(old).step_id, world.current(new).step_id) == ("ai_review", "judge")
    with every_tenant():
        assert set(definition_of(world.fresh(old)).steps) == {"ai_review", "done", "stop"}
    world.complete(old)
    assert world.fresh(old).state == "completed"
    check_record(world, old)
