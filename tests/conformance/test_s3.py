"""S3, runtime queue and worker: one test per sentence. A docstring begins with the section; what follows its dash says
what the constitution decides instead, where it does."""

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.core import mail
from django.db import IntegrityError, transaction
from django.utils import timezone

from attempts.execution.rules import FairRound, Share, execution_backoff, retry_plan
from attempts.execution.services.dispatch import attempt_dispatch
from attempts.execution.services.work import Places
from attempts.intake.models import IdempotencyRecord
from attempts.lifecycle.models import Attempt
from attempts.notify.models import Notification
from attempts.notify.services.announce import reviews_announce
from attempts.notify.services.routes import route_create
from attempts.notify.services.send import notifications_send
from attempts.notify.states import NotificationState, NotifyChannel
from attempts.reviews.models import Review, ReviewVote
from attempts.reviews.services.clock import reviews_expire
from governance.contracts.rules.documents import default_documents
from governance.enforcement.rules import EVALUATORS
from governance.people.models import User
from governance.tenancy.models import Organization
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.execution.support import change, retry_becomes_due
from tests.attempts.execution.target import CountingTarget
from tests.cast import Cast
from tests.conformance.story import Story
from tests.governed import DENY, HOLD, make_policy, open_contract
from tests.workflows.engine.support import Driven, always, definition, step
from tests.workflows.running import Running
from tests.workflows.world import World, brief
from workflows.runs.models import WorkflowInstance, WorkflowStep
from workflows.runs.states import INSTANCE_MOVES, STEP_MOVES, InstanceStatus, StepStatus

RETRY = default_documents()["retry_and_replay"] | {"automatic_retries": "when_safe", "max_attempts": 5}
ID = UUID(int=7)


def driven(kind: str = "run_ai_review", *, say: Any = None, **fields: Any) -> Driven:
    """A run of one step that may fail, and the end; already begun."""
    steps = {
        "work": step(kind, {"on_complete": "done", "on_failure": "stop"}, **fields),
        "done": step("emit_final", "TERMINAL"),
        "stop": step("halt", params={"reason_code": "ai_review_failed"}),
    }
    made = Driven(definition(steps), **({"say": say} if say else {}))
    made.start()
    return made


def plan(**changes: Any) -> Any:
    at = timezone.now()
    facts = {"effect": "idempotent", "retryable": True, "tries": 1, "first_at": at, "at": at, "attempt_id": ID}
    return retry_plan(document=RETRY, **(facts | changes))


@pytest.fixture
def run(story: Story) -> tuple[Running, WorkflowInstance]:
    """A run that a case has begun."""
    running = Running(story.cast)
    return running, running.start()


# 1 Runtime objects


@pytest.mark.parametrize(
    "name", ["id", "organization_id", "definition_id", "definition_version", "trigger_type", "trigger_ref", "state"]
)
def test_a_run_has_its(run: tuple[Running, WorkflowInstance], name: str) -> None:
    """S3 1.1"""
    fields = {field.attname for field in WorkflowInstance._meta.concrete_fields}
    known = {"definition_version": "definition_id", "trigger_type": "case_id", "trigger_ref": "case_id"}
    assert known.get(name, name) in fields
    assert getattr(run[1], known.get(name, name))


def test_a_run_executes_one_version_against_one_trigger(run: tuple[Running, WorkflowInstance]) -> None:
    """S3 1.1"""
    running, instance = run
    assert instance.definition_id == running.definition.id


def test_a_trigger_begins_one_run_only(run: tuple[Running, WorkflowInstance]) -> None:
    """S3 1.1"""
    running, instance = run
    running.send(running.envelope("case.created", {"patient_id": "pat-1"}, case_id=instance.case_id))
    with every_tenant():
        assert WorkflowInstance.objects.filter(case_id=instance.case_id).count() == 1


def test_a_step_has_a_stable_name_a_place_and_a_try(run: tuple[Running, WorkflowInstance]) -> None:
    """S3 1.2"""
    current = run[0].current(run[1])
    assert current is not None
    assert current.step_id
    assert (current.number, current.attempt) == (1, 1)


def test_a_step_that_has_an_effect_has_an_idempotency_key(story: Story) -> None:
    """S3 1.2"""
    asked = story.asked(key="key-step-0001")
    assert story.attempt(asked).idempotency_key == "key-step-0001"


def test_an_executing_step_has_an_owner_and_an_end_of_its_lease(story: Story) -> None:
    """S3 1.2"""
    asked = story.asked()
    story.lease(asked)
    row = story.attempt(asked)
    assert row.lease_owner
    assert row.lease_expires_at is not None


def test_an_approval_is_created_where_policy_asks_for_a_person(story: Story) -> None:
    """S3 1.3"""
    assert story.review(story.asked("hold")).status == "requested"


def test_an_approval_has_a_tier(story: Story) -> None:
    """S3 1.3"""
    assert story.review(story.asked("hold")).tier == "customer_clinician"


def test_an_approval_may_need_two_people(story: Story) -> None:
    """S3 1.3"""
    story.contract("two", rules=[HOLD[0] | {"approvals_required": 2}])
    held = story.asked("two")
    assert story.decide(held).status_code == 200
    assert story.attempt(held).state == "review-required"
    second = story.cast.person("rolf", "reviewer:customer_clinician")
    assert story.decide(held, client=story.cast.session(second)).status_code == 200
    assert story.attempt(held).state == "approved-for-execution"


def test_two_approvals_of_one_person_are_one(story: Story) -> None:
    """S3 1.3"""
    story.contract("two", rules=[HOLD[0] | {"approvals_required": 2}])
    held = story.asked("two")
    story.decide(held)
    assert story.decide(held).status_code in {403, 409}


@pytest.mark.parametrize("status", ["requested", "approved", "rejected", "expired", "canceled"])
def test_an_approval_can_be(story: Story, status: str) -> None:
    """S3 1.3"""
    held = story.asked("hold")
    if status == "approved":
        story.decide(held)
    elif status == "rejected":
        story.decide(held, "reject", reason_code="reviewer_wrong_target")
    elif status == "expired":
        with every_tenant():
            Review.objects.filter(attempt_id=held).update(expires_at=timezone.now() - timedelta(seconds=5))
        story.ticks()
    elif status == "canceled":
        story.act(held, "cancel", client=story.caller)
    assert story.review(held).status == status
    assert (story.attempt(held).state == "approved-for-execution") is (status == "approved")


def test_every_side_effect_emits_a_receipt(story: Story) -> None:
    """S3 1.4"""
    asked = story.asked()
    story.complete(asked)
    assert len(story.receipts(asked)) == 1


def test_a_receipt_says_what_was_attempted(story: Story) -> None:
    """S3 1.4"""
    asked = story.asked()
    story.complete(asked)
    (receipt,) = story.read(asked, "receipts")["results"]
    assert receipt["request_metadata"]


def test_a_receipt_says_what_happened(story: Story) -> None:
    """S3 1.4"""
    asked = story.asked()
    story.complete(asked, response_metadata={"reference": "r-9"})
    (receipt,) = story.read(asked, "receipts")["results"]
    assert receipt["response_metadata"] == {"reference": "r-9"}


def test_a_receipt_says_whether_and_how_it_can_be_reversed(story: Story) -> None:
    """S3 1.4"""
    asked = story.asked()
    story.complete(asked, reversible=True, reversal_hint="case.reopen")
    (receipt,) = story.read(asked, "receipts")["results"]
    assert (receipt["reversible"], receipt["reversal_hint"]) == (True, "case.reopen")


# 2 State machine


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("queued", "running"),
        ("running", "waiting_approval"),
        ("waiting_approval", "running"),
        ("waiting_approval", "halted"),
        ("running", "completed"),
        ("running", "halted"),
        ("queued", "cancelled"),
        ("running", "cancelled"),
    ],
)
def test_a_run_moves(source: str, target: str) -> None:
    """S3 2.1 — succeeded is completed, failed_terminal is halted."""
    assert (source, target) in INSTANCE_MOVES


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("in_progress", "completed"),
        ("in_progress", "waiting_approval"),
        ("waiting_approval", "in_progress"),
        ("waiting_approval", "failed"),
        ("in_progress", "failed"),
        ("pending", "cancelled"),
        ("in_progress", "cancelled"),
    ],
)
def test_a_step_moves(source: str, target: str) -> None:
    """S3 2.2"""
    assert (source, target) in STEP_MOVES


def test_a_run_waits_when_an_approval_is_required() -> None:
    """S3 2.1"""
    assert driven(say=always("hold", "review_required")).status == "waiting_approval"


def test_a_run_with_a_transient_failure_and_retries_left_is_not_at_its_end() -> None:
    """S3 2.1 — failed_retryable is running, with a step that is due later."""
    made = driven(max_retries=2, retry_delay_seconds=5)
    made.fail()
    assert (made.status, made.here.state) == ("running", "pending")
    assert made.here.next_eligible_at is not None


def test_a_policy_that_denies_ends_the_run() -> None:
    """S3 2.1"""
    assert driven(say=always("deny")).status == "halted"


def test_a_run_has_succeeded_only_if_every_step_has() -> None:
    """S3 2.2"""
    made = driven()
    made.complete()
    assert made.status == "completed"
    assert {row.state for row in made.state.steps} <= {StepStatus.COMPLETED, StepStatus.SKIPPED}


def test_what_ended_does_not_move(story: Story) -> None:
    """S3 2.2"""
    ended = {InstanceStatus.COMPLETED, InstanceStatus.CANCELLED}
    assert not {source for source, _ in INSTANCE_MOVES} & {str(one) for one in ended}


# 3 Queue and lease


def test_the_same_message_twice_does_nothing_twice(story: Story, target: CountingTarget) -> None:
    """S3 3.1"""
    story.contract("sent", adapter="http")
    asked = story.asked("sent", runtime_mode="active")
    for _ in range(3):
        attempt_dispatch(attempt_id=asked, now=timezone.now)
    assert len(target.requests) == 1


def test_the_same_event_twice_is_taken_once(run: tuple[Running, WorkflowInstance]) -> None:
    """S3 3.1"""
    running, _ = run
    envelope = running.envelope("case.created", {"patient_id": "pat-1"}, case_id=uuid4())
    running.send(envelope)
    before = running.requests(running.instance(UUID(envelope["case_id"])))
    running.send(envelope)
    assert running.requests(running.instance(UUID(envelope["case_id"]))) == before


def test_a_worker_executes_only_with_a_lease(story: Story) -> None:
    """S3 3.2"""
    asked = story.asked()
    assert story.act(asked, "complete", lease_token="none", response_metadata={}).status_code == 409


def test_only_what_is_ready_can_be_leased(story: Story) -> None:
    """S3 3.2"""
    assert story.act(story.asked("hold"), "lease").status_code == 409


def test_a_lease_that_another_worker_owns_is_refused(story: Story) -> None:
    """S3 3.2"""
    asked = story.asked()
    story.lease(asked)
    assert story.act(asked, "lease", client=story.cast.api("attempts:execute")).status_code == 409


def test_a_heartbeat_extends_the_lease(story: Story) -> None:
    """S3 3.2"""
    asked = story.asked()
    token = story.lease(asked)
    change(asked, "lease_expires_at = clock_timestamp() + interval '5 seconds'")
    before = story.attempt(asked).lease_expires_at
    assert story.act(asked, "heartbeat", lease_token=token).status_code == 200
    after = story.attempt(asked).lease_expires_at
    assert before is not None
    assert after is not None
    assert after - before > timedelta(seconds=30)


def test_a_lease_has_a_fence_that_grows(story: Story) -> None:
    """S3 3.2"""
    story.contract("safe", adapter="external", effect="idempotent", changes={"retry_and_replay": RETRY})
    asked = story.asked("safe")
    first = story.attempt(asked).lease_token
    assert story.fail(asked, retryable=True).status_code == 200
    second = story.attempt(asked).lease_token
    retry_becomes_due(asked)
    story.ticks()
    story.lease(asked)
    assert first < second < story.attempt(asked).lease_token


def test_the_database_decides_and_the_message_only_wakes(story: Story) -> None:
    """S3 3.3"""
    held = story.asked("hold")
    assert attempt_dispatch(attempt_id=held, now=timezone.now) is None
    assert story.intents(held) == 0


@pytest.mark.parametrize("cap", ["max_concurrency", "max_runs_per_min", "max_writes_per_run"])
def test_a_tenant_has_the_cap(story: Story, cap: str) -> None:
    """S3 3.4"""
    world = World(story.cast, brief())
    world.caps(**{cap: 1})
    first, second = world.start(), world.start()
    if cap == "max_writes_per_run":
        world.complete(first)
        assert world.halted(first) == "write_cap_reached"
    else:
        assert (first.state, second.state) == ("running", "queued")


def test_a_workflow_can_have_a_cap_of_its_own(story: Story) -> None:
    """S3 3.4"""
    limits = default_documents()["concurrency_and_locks"]["limits"] | {"per_workflow": 1, "per_context": None}
    story.contract("capped", changes={"concurrency_and_locks": {"limits": limits}})
    assert [story.ask("capped").status_code for _ in range(2)] == [201, 429]
    assert story.ask().status_code == 201


def test_turns_are_weighted_by_purchased_capacity() -> None:
    """S3 3.4"""
    small, large = UUID(int=1), UUID(int=2)
    turns = FairRound({small: Share(capacity=1, under_way=0), large: Share(capacity=3, under_way=0)})
    given = []
    for _ in range(8):
        key = turns.turn()
        assert key is not None
        given.append(key)
        turns.served(key)
    assert (given.count(small), given.count(large)) == (2, 6)


def test_tenants_with_the_same_capacity_take_turns() -> None:
    """S3 3.4"""
    both = [UUID(int=1), UUID(int=2)]
    turns = FairRound(dict.fromkeys(both, Share(capacity=1, under_way=0)))
    given = []
    for _ in range(4):
        key = turns.turn()
        assert key is not None
        given.append(key)
        turns.served(key)
    assert given[:2] != given[1:3]
    assert sorted(given) == sorted(both * 2)


def test_an_organization_has_a_weight(story: Story, target: CountingTarget) -> None:
    """S3 3.4"""
    story.contract("sent", adapter="http")
    story.asked("sent", runtime_mode="active")
    for weight in (1, 7):
        with every_tenant():
            Organization.objects.filter(id=story.cast.organization.id).update(capacity_units=weight)
            chosen = Places(4).choose(at=timezone.now())
        assert chosen is not None
        assert chosen.turn.weight == weight


# 4 Idempotency


def test_a_key_identifies_the_side_effect(story: Story) -> None:
    """S3 4.1"""
    body = story.body()
    assert story.asked(key="key-same-0001", payload=body) == story.asked(key="key-same-0001", payload=body)


def test_the_system_enforces_that_a_key_is_unique(story: Story) -> None:
    """S3 4.1"""
    story.asked(key="key-same-0001")
    with every_tenant():
        record = IdempotencyRecord.objects.get(key="key-same-0001")
        record.id, record._state.adding = uuid4(), True
        with pytest.raises(IntegrityError), transaction.atomic():
            record.save(force_insert=True)


def test_a_key_of_another_tenant_is_another_key(story: Story) -> None:
    """S3 4.1"""
    elsewhere = Cast()
    elsewhere.organization, elsewhere.operator = story.cast.other, story.cast.other_operator  # type: ignore[misc]
    open_contract(elsewhere, slug="allow")
    stranger = story.cast.api("attempts:create", organization=story.cast.other)
    ours, theirs = (story.asked(key="key-same-0001", client=client) for client in (story.caller, stranger))
    assert ours != theirs


def test_the_receiver_gets_the_key_of_the_effect(story: Story, target: CountingTarget) -> None:
    """S3 4.1"""
    story.contract("sent", adapter="http")
    asked = story.asked("sent", runtime_mode="active")
    attempt_dispatch(attempt_id=asked, now=timezone.now)
    assert target.requests[0]["key"] == f"hp-{asked}"


def test_a_success_that_is_known_is_not_performed_again(story: Story, target: CountingTarget) -> None:
    """S3 4.2"""
    story.contract("sent", adapter="http")
    asked = story.asked("sent", runtime_mode="active")
    attempt_dispatch(attempt_id=asked, now=timezone.now)
    attempt_dispatch(attempt_id=asked, now=timezone.now)
    assert sum(target.effects.values()) == 1
    assert len(story.receipts(asked)) == 1


# 5 Governance checkpoints


@pytest.mark.parametrize("part", ["connector", "operation", "target_ref", "fields", "risk_tier"])
def test_a_proposed_action_has_its(story: Story, part: str) -> None:
    """S3 5"""
    row = story.attempt(story.asked())
    assert getattr(row, part)


def test_policy_is_evaluated_for_every_side_effect(story: Story) -> None:
    """S3 5"""
    assert EVALUATORS[-1] == "policy"
    asked = story.asked()
    assert story.decision(asked).verdict == "allow"
    make_policy(story.cast, rules=DENY, slug="policy-allow")
    refused = story.act(asked, "lease")
    assert (refused.status_code, story.attempt(asked).reason_code) == (409, "policy_denied")
    assert story.intents(asked) == 0


def test_a_denied_action_is_at_its_end(story: Story) -> None:
    """S3 5"""
    denied = story.ask("deny").json()["attempt_id"]
    assert story.attempt(denied).ended_at is not None


def test_an_allowed_action_proceeds(story: Story) -> None:
    """S3 5"""
    assert story.ask().status_code == 201


def test_an_action_that_needs_approval_creates_one_and_waits(story: Story) -> None:
    """S3 5"""
    answer = story.ask("hold")
    assert (answer.status_code, answer.json()["state"]) == (202, "review-required")


def test_a_step_whose_policy_denies_ends_its_run(story: Story) -> None:
    """S3 5"""
    assert World(story.cast, brief(), rules=DENY).start().state == "halted"


def test_a_step_whose_policy_holds_waits_with_its_run(story: Story) -> None:
    """S3 5"""
    assert World(story.cast, brief(), rules=HOLD).start().state == "waiting_approval"


def test_the_decision_on_an_approval_is_appended_to_the_audit(story: Story) -> None:
    """S3 5"""
    held = story.asked("hold")
    story.decide(held)
    assert "review.approved" in story.actions(story.review(held).id)


# 6 Retries


@pytest.mark.parametrize("status", [500, 502, 503, 429])
def test_a_transient_answer_is_retried_where_that_is_safe(story: Story, target: CountingTarget, status: int) -> None:
    """S3 6.1"""
    story.contract("safe", adapter="http", effect="idempotent", changes={"retry_and_replay": RETRY})
    target.statuses = [status]
    asked = story.asked("safe", runtime_mode="active")
    attempt_dispatch(attempt_id=asked, now=timezone.now)
    row = story.attempt(asked)
    assert (row.state, row.tries) == ("approved-for-execution", 1)
    assert row.next_eligible_at is not None


@pytest.mark.parametrize("status", [400, 404, 422])
def test_an_answer_that_refuses_is_terminal(story: Story, target: CountingTarget, status: int) -> None:
    """S3 6.1"""
    story.contract("safe", adapter="http", effect="idempotent", changes={"retry_and_replay": RETRY})
    target.statuses = [status]
    asked = story.asked("safe", runtime_mode="active")
    attempt_dispatch(attempt_id=asked, now=timezone.now)
    assert story.attempt(asked).state == "failed-quarantined"


def test_a_denial_by_policy_is_terminal(story: Story) -> None:
    """S3 6.1"""
    denied = story.ask("deny").json()["attempt_id"]
    assert story.attempt(denied).next_eligible_at is None


def test_a_rejection_is_terminal(story: Story) -> None:
    """S3 6.1"""
    held = story.asked("hold")
    assert story.decide(held, "reject", reason_code="reviewer_wrong_target").status_code == 200
    assert (story.attempt(held).state, story.attempt(held).reason_code) == ("preflight-denied", "review_rejected")


def test_an_expired_approval_is_terminal(story: Story) -> None:
    """S3 6.1"""
    held = story.asked("hold")
    with every_tenant():
        Review.objects.filter(attempt_id=held).update(expires_at=timezone.now() - timedelta(seconds=5))
        reviews_expire(at=timezone.now())
    assert (story.attempt(held).state, story.attempt(held).reason_code) == ("preflight-denied", "review_expired")


def test_waits_grow_from_seconds_to_minutes() -> None:
    """S3 6.2"""
    waits = [execution_backoff(RETRY["backoff_seconds"], tries).total_seconds() for tries in range(1, 6)]
    assert waits == [5, 30, 120, 600, 600]


def test_waits_have_jitter() -> None:
    """S3 6.2"""
    at = timezone.now()
    due = {plan(at=at, first_at=at, attempt_id=UUID(int=number)).due_at for number in range(20)}
    assert len(due) == 20
    wait = execution_backoff(RETRY["backoff_seconds"], 1)
    assert all(at + wait <= one <= at + wait * (1 + RETRY["jitter_fraction"]) for one in due)


def test_waits_are_capped_by_the_window() -> None:
    """S3 6.2"""
    at = timezone.now()
    assert plan(first_at=at - timedelta(seconds=RETRY["window_seconds"]), at=at).why == "window_passed"


def test_the_number_of_the_try_is_stored(story: Story) -> None:
    """S3 6.2"""
    asked = story.asked()
    story.lease(asked)
    assert story.attempt(asked).tries == 1


def test_the_last_error_is_stored(story: Story) -> None:
    """S3 6.2"""
    case = story.failed()
    assert story.attempt(case.attempt_id).reason_code == "adapter_failed"


def test_when_the_next_try_is_due_is_stored(story: Story, target: CountingTarget) -> None:
    """S3 6.2"""
    story.contract("safe", adapter="http", effect="idempotent", changes={"retry_and_replay": RETRY})
    target.statuses = [503]
    asked = story.asked("safe", runtime_mode="active")
    attempt_dispatch(attempt_id=asked, now=timezone.now)
    due = story.attempt(asked).next_eligible_at
    assert due is not None
    assert due > timezone.now()


# 7 People


def test_the_card_has_what_is_asked_and_why(story: Story) -> None:
    """S3 7"""
    held = story.asked("hold")
    card = story.reviewer.get(f"/api/v1/reviews/{story.review(held).id}").json()
    assert card["asked"]["operation"] == "case.close"
    assert card["asked"]["reversibility"]
    assert card["action_digest"]


@pytest.mark.parametrize(("verb", "state"), [("approve", "approved-for-execution"), ("reject", "preflight-denied")])
def test_a_person_can(story: Story, verb: str, state: str) -> None:
    """S3 7"""
    held = story.asked("hold")
    more = {"reason_code": "reviewer_wrong_target"} if verb == "reject" else {}
    assert story.decide(held, verb, **more).status_code == 200
    assert story.attempt(held).state == state


def test_an_approval_puts_the_work_back_to_ready(story: Story) -> None:
    """S3 7"""
    held = story.asked("hold")
    assert story.attempt(held).next_eligible_at is None
    story.decide(held)
    assert story.attempt(held).next_eligible_at is not None
    assert story.lease(held)


def test_a_vote_is_appended(story: Story) -> None:
    """S3 7"""
    held = story.asked("hold")
    story.decide(held)
    with every_tenant():
        assert ReviewVote.objects.filter(review__attempt_id=held).count() == 1


def test_a_notice_is_a_row_before_it_is_sent(story: Story) -> None:
    """S3 7"""
    person = story.cast.reviewer
    User.objects.filter(id=person.id).update(email="rita@clinic.invalid")
    with every_tenant():
        route_create(
            actor=story.cast.actor(story.cast.operator, [story.cast.organization]),
            at=timezone.now() - timedelta(minutes=1),
            organization=story.cast.organization,
            channel=NotifyChannel.EMAIL,
            base_url="https://holdpoint.example",
        )
    held = story.asked("hold")
    reviews_announce(at=timezone.now())
    with every_tenant():
        row = Notification.objects.get(review__attempt_id=held)
    assert (row.state, row.recipient_id, mail.outbox) == (NotificationState.PENDING, person.id, [])
    notifications_send(now=timezone.now, base_url="https://holdpoint.example")
    with every_tenant():
        assert Notification.objects.get(id=row.id).state == NotificationState.SENT
    assert len(mail.outbox) == 1


# 8 Evidence


def test_the_inputs_of_an_attempt_are_metadata_only(story: Story) -> None:
    """S3 8"""
    before = story.counts()[0]
    content = {"text": "zx81content"}
    for payload in (
        story.body(payload=content),
        story.body(action={"payload": content}),
        story.body(metadata={"unlisted": content}),
    ):
        assert story.ask(payload=payload).status_code in {400, 422}
    with every_tenant():
        later = list(Attempt.objects.order_by("id"))[before:]
    assert [vars(row) for row in later if "zx81content" in str(vars(row))] == []
    row = story.attempt(story.asked())
    assert (row.payload_ref, len(row.payload_sha256)) == (f"payload-{story.number:04}", 64)


def test_the_cost_is_known_per_provider_and_model(story: Story) -> None:
    """S3 8"""
    asked = story.asked()
    cost = {"provider": "acme", "model": "m-1", "units": 812, "amount": "0.004060", "currency": "USD"}
    assert story.complete(asked, cost=cost).status_code == 200
    assert story.receipts(asked)[0].cost == cost


def test_steps_are_rows_of_their_run(run: tuple[Running, WorkflowInstance]) -> None:
    """S3 1.2"""
    running, instance = run
    with every_tenant():
        rows = list(WorkflowStep.objects.filter(instance=instance).values_list("step_id", "number", "attempt"))
    current = running.current(instance)
    assert current is not None
    assert rows[-1] == (current.step_id, current.number, current.attempt)
    assert [number for _, number, _ in rows] == list(range(1, len(rows) + 1))
