"""Whatever comes at the same moment, on real connections: every input counts once, and nobody waits for each other."""

import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection, transaction
from django.utils import timezone

from attempts.execution.models import DispatchIntent
from attempts.lifecycle.models import Attempt
from attempts.reviews.models import Review
from governance.contracts.states import ContractState
from governance.enforcement.sql import send_lock_exclude
from governance.shutdown.services import shutdown_engage
from governance.shutdown.states import ShutdownScope
from reasoncodes.base.errors import DomainError
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.reviews.support import at_once
from tests.cast import Cast
from tests.governed import HOLD
from tests.workflows.world import World, ago, brief, check_record, people
from workflows.events.models import WorkflowEvent
from workflows.runs.models import WorkflowInstance
from workflows.runs.selectors.run import instance_lock
from workflows.runs.services.intervene import InterventionOrder, instance_supersede
from workflows.runs.states import InterventionAction

pytestmark = pytest.mark.django_db(transaction=True)
ROUNDS = 4


def refused(work: Callable[[], Any]) -> Callable[[], str]:
    """What people ask for may be refused by then; anything else is a failure. (A deadlock is.)"""

    def run() -> str:
        try:
            work()
        except DomainError as error:
            return error.code
        return "done"

    return run


def count(instance: WorkflowInstance) -> Counter[str]:
    with every_tenant():
        return Counter(WorkflowEvent.objects.filter(instance=instance).values_list("outcome", flat=True))


def test_the_same_completion_twenty_times_at_once_advances_once(cast: Cast) -> None:
    world = World(cast).ready()
    instance = world.start()
    envelope = world.envelope(
        "consent.check.completed",
        {"granted": True, "missing_types": []},
        case_id=instance.case_id,
        correlation_id=world.current(instance).id,
    )
    found = at_once(*[lambda: world.send(envelope)] * 20)
    assert Counter(one.duplicate for one in found) == {False: 1, True: 19}
    assert count(instance) == {"advanced": 2}
    assert world.sent(instance) == ["consent.check.requested", "case.images_check.requested"]
    # And twenty that differ only by their event id.
    step = world.current(instance)
    payload = {"count": 3, "passed": True, "image_ids": []}
    at_once(*[lambda: world.tell(instance, "case.images_check.completed", payload, correlation_id=step.id)] * 20)
    assert count(instance) == {"advanced": 3, "stale": 19}
    assert world.sent(instance)[2:] == ["ai_review.requested"]
    with every_tenant():
        assert Attempt.objects.count() == DispatchIntent.objects.count() == 1
    check_record(world, instance)


def test_who_waited_for_the_lock_sees_what_was_written_meanwhile(cast: Cast) -> None:
    """Steps and lock come with one statement, which sees the steps as they were when it began to wait."""
    world = World(cast).ready()
    instance = world.start()
    locked, waits = threading.Event(), threading.Event()

    def first() -> None:
        with every_tenant(), transaction.atomic():
            instance_lock(instance_id=instance.id)
            locked.set()
            assert waits.wait(20)
            world.complete(instance)

    def second() -> list[tuple[str, str]]:
        assert locked.wait(20)
        with every_tenant(), transaction.atomic():
            threading.Thread(target=tell_when_somebody_waits, args=[waits]).start()
            held = instance_lock(instance_id=instance.id)
            assert held.events == 2
            return [(step.step_id, step.state) for step in held.locked_steps or ()]

    _, seen = at_once(first, second)
    assert seen == [("consent_gate", "completed"), ("image_check", "in_progress")]


def tell_when_somebody_waits(waits: threading.Event, how_many: int = 1) -> None:
    with connection.cursor() as cursor:
        for _ in range(200):
            cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
            if cursor.fetchone()[0] >= how_many:
                break
            time.sleep(0.05)
    waits.set()
    connection.close()


def test_a_request_does_not_go_out_after_a_shutdown_that_it_met_at_the_gate(cast: Cast) -> None:
    world = World(cast).ready()
    instance = world.start()
    engaged = threading.Event()

    def engage() -> None:
        with every_tenant(), transaction.atomic():
            send_lock_exclude()
            shutdown_engage(
                actor=world.operator,
                at=timezone.now(),
                scope=ShutdownScope.ORGANIZATION,
                organization_id=world.organization.id,
                reason_code="operator_shutdown",
                note="Incident 17",
            )
            engaged.set()
            waits = threading.Event()
            threading.Thread(target=tell_when_somebody_waits, args=[waits, 2]).start()
            assert waits.wait(20)

    def answer() -> str:
        assert engaged.wait(20)
        return world.complete(instance).event.outcome

    def begin() -> Any:
        assert engaged.wait(20)
        return world.start()

    _, outcome, begun = at_once(engage, answer, begin)
    assert outcome == "advanced"
    assert world.fresh(begun).halt_reason == "shutdown_engaged"
    assert "consent.check.requested" not in world.sent(begun)
    assert world.fresh(instance).halt_reason == "shutdown_engaged"
    assert world.sent(instance)[:1] == ["consent.check.requested"]
    assert "case.images_check.requested" not in world.sent(instance)


def test_a_case_that_is_told_by_five_at_once_runs_once(cast: Cast) -> None:
    world = World(cast).ready()
    for _ in range(ROUNDS):
        case = uuid4()
        tellings = [world.envelope("case.created", {"patient_id": "pat-1"}, case_id=case) for _ in range(5)]
        found = at_once(*[lambda one=one: world.send(one) for one in tellings])
        assert Counter(one.event.outcome for one in found) == {"advanced": 1, "ignored": 4}
        with every_tenant():
            instance = WorkflowInstance.objects.get(case_id=case)
        assert {one.event.instance_id for one in found} == {instance.id}
        check_record(world, instance)


def test_no_more_runs_start_at_once_than_there_is_room_for(cast: Cast) -> None:
    world = World(cast).ready()
    world.caps(max_concurrency=3)
    at_once(*[lambda: world.start()] * 10)
    with every_tenant():
        assert Counter(WorkflowInstance.objects.values_list("state", flat=True)) == {"running": 3, "queued": 7}
    world.caps(max_concurrency=5)
    handed = at_once(*[lambda: world.tick("instances_dispatch")] * 3)
    assert sum(handed) == 2
    with every_tenant():
        assert Counter(WorkflowInstance.objects.values_list("state", flat=True)) == {"running": 5, "queued": 5}


def test_no_more_runs_are_resumed_at_once_than_there_is_room_for(cast: Cast) -> None:
    world = World(cast).ready()
    halted = [world.start() for _ in range(6)]
    for instance in halted:
        world.intervene(instance, "halt")
    world.caps(max_concurrency=2)
    answers = at_once(*[refused(lambda one=one: world.intervene(one, "resume")) for one in halted])
    assert Counter(answers) == {"done": 2, "no-place-free": 4}
    with every_tenant():
        assert Counter(WorkflowInstance.objects.values_list("state", flat=True)) == {"running": 2, "halted": 4}


def test_two_ticks_over_the_same_due_rows_handle_each_once(cast: Cast) -> None:
    world = World(cast, brief(timeout_seconds=60, max_retries=1) | {"workflow_timeout_seconds": 5000}).ready()
    overdue = [world.start(at=ago(6000)) for _ in range(6)]
    assert sum(at_once(*[lambda: world.tick("deadlines_pass")] * 3)) == 6
    late = [world.start(at=ago(600)) for _ in range(6)]
    retrying = [world.start(at=ago(50)) for _ in range(6)]
    for instance in retrying:
        world.fail(instance, at=ago(40))
    assert sum(at_once(*[lambda: world.tick("steps_time_out")] * 3)) == 6
    bells = [lambda one=one: world.dispatch(world.current(one).governed_attempt) for one in retrying]
    at_once(*[lambda: world.tick("step_retries_due")] * 2, *bells)
    for instance in overdue:
        assert (world.halted(instance), count(instance)) == ("workflow_deadline_passed", {"advanced": 2})
    for instance in late:
        assert (world.halted(instance), count(instance)) == ("step_timed_out", {"advanced": 2})
    for instance in retrying:
        assert (world.sent(instance), count(instance)) == (["ai_review.requested"] * 2, {"advanced": 3})
        check_record(world, instance)


def test_completion_against_timeout_one_of_them_counts(cast: Cast) -> None:
    world = World(cast, brief(timeout_seconds=60)).ready()
    ends = set()
    for _ in range(ROUNDS):
        instance = world.start(at=ago(600))
        step = world.current(instance)
        at_once(lambda i=instance, s=step: world.complete(i, of=s.id), lambda: world.tick("steps_time_out"))
        found = world.fresh(instance)
        ends.add(found.state)
        assert found.state in {"completed", "halted"}
        assert count(instance)["advanced"] == 2
        check_record(world, instance)
    assert ends


def test_completion_against_halt_is_a_pause_that_really_stops(cast: Cast) -> None:
    world = World(cast, brief()).ready()
    for _ in range(ROUNDS):
        instance = world.start()
        step = world.current(instance)
        _, halted = at_once(
            lambda i=instance, s=step: world.complete(i, of=s.id),
            refused(lambda i=instance: world.intervene(i, "halt")),
        )
        found = world.fresh(instance)
        assert (found.state, halted) in {("completed", "intervention-not-legal"), ("halted", "done")}
        if found.state == "halted":
            assert world.log(instance)[-1][1] == "late"
        check_record(world, instance)


def test_supersede_against_completion_leaves_one_run_of_the_case(cast: Cast) -> None:
    world = World(cast, brief()).ready()
    operator = world.operator

    def supersede(instance: WorkflowInstance) -> None:
        order = InterventionOrder(InterventionAction.SUPERSEDE, "data_correction")
        with every_tenant():
            instance_supersede(instance_id=instance.id, order=order, actor=operator, at=timezone.now(), region="US")

    for _ in range(ROUNDS):
        instance = world.start()
        step = world.current(instance)
        at_once(
            lambda i=instance, s=step: world.complete(i, of=s.id),
            *[refused(lambda i=instance: supersede(i))] * 2,
        )
        with every_tenant():
            runs = list(WorkflowInstance.objects.filter(case_id=instance.case_id).order_by("id"))
        assert [one.superseded_by_id for one in runs] == [one.id for one in runs[1:]] + [None]
        statuses = [one.state for one in runs]
        assert statuses in (["completed"], ["cancelled", "running"], ["cancelled", "cancelled", "running"])
        for one in runs:
            check_record(world, one)


def test_approval_against_cancellation_sends_nothing_that_is_not_accounted_for(cast: Cast) -> None:
    world = World(cast, brief(), rules=HOLD).ready()

    def approve(instance: WorkflowInstance) -> None:
        world.dispatch(world.vote(instance))

    for _ in range(ROUNDS):
        instance = world.start()
        attempt = world.current(instance).governed_attempt
        at_once(
            refused_or_gone(lambda i=instance: approve(i)), refused(lambda i=instance: world.intervene(i, "cancel"))
        )
        assert world.fresh(instance).state == "cancelled"
        with every_tenant():
            found = Attempt.objects.get(id=attempt)
            assert not Review.objects.filter(status="requested").exists()
        expected = "failed-quarantined" if world.sent(instance) else "preflight-denied"
        assert found.state == expected
        world.follow()
        check_record(world, instance)


def refused_or_gone(work: Callable[[], Any]) -> Callable[[], str]:
    """The review may have ended before the person looked."""

    def run() -> str:
        try:
            work()
        except (DomainError, Review.DoesNotExist, AssertionError) as error:
            return type(error).__name__
        return "done"

    return run


def test_a_judgement_against_the_timeout_of_its_step_neither_waits_for_the_other(cast: Cast) -> None:
    world = World(cast, people(timeout_seconds=60)).ready()
    person = world.person()
    with connection.cursor() as cursor:
        cursor.execute("SHOW deadlock_timeout")
        assert cursor.fetchone() == ("1s",)  # a deadlock would be found and raised within the test
    for _ in range(ROUNDS):
        instance = world.start(at=ago(59.9))  # about to end: both are possible
        at_once(
            refused_or_gone(lambda i=instance: world.judge(i, actor=person)),
            lambda: world.tick("steps_time_out"),
            lambda: world.follow(),
        )
        world.follow()
        world.tick("steps_time_out")
        found = world.fresh(instance)
        if found.state == "waiting_approval":  # neither came in time
            continue
        assert found.state in {"completed", "halted"}
        assert count(instance)["advanced"] == 2
        check_record(world, instance)


def test_publishing_while_cases_begin_gives_every_case_one_whole_definition(cast: Cast) -> None:
    world = World(cast, brief()).ready()
    began: list[WorkflowInstance] = []
    at_once(*[lambda: began.append(world.start())] * 8, lambda: world.publish(brief(timeout_seconds=77)))
    assert len(began) == 8
    for instance in began:
        with every_tenant():
            found = WorkflowInstance.objects.select_related("definition", "contract").get(id=instance.id)
        assert found.definition_sha256 == found.definition.snapshot_sha256
        assert found.contract_id == found.definition.contract_id
        assert found.contract is not None
        assert (found.contract.state, found.state, found.halt_reason) == (ContractState.OPEN, "running", "")
        world.complete(instance)
        assert world.fresh(instance).state == "completed"
        check_record(world, instance)
