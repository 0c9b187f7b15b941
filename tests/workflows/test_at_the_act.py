"""A step's request is decided when it is dispatched: intake and dispatch in one transaction are one decision, a
released step and a retry get one of their own."""

from typing import Any

import pytest

from attempts.execution.models import DispatchIntent
from attempts.lifecycle.models import Attempt
from attempts.quarantine.models import QuarantineCase
from attempts.reviews.models import Review
from governance.enforcement.models import EnforcementDecision
from governance.enforcement.services import decision_replay
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.governed import DENY, HOLD, make_policy
from tests.workflows.world import World, ago, brief, check_record

pytestmark = pytest.mark.django_db
TWO = [HOLD[0] | {"approvals_required": 2}]


def at_act(attempt_id: Any) -> list[tuple[str, str]]:
    with every_tenant():
        rows = list(EnforcementDecision.objects.filter(subject_id=attempt_id).order_by("id"))
        assert all(decision_replay(row=row).agrees for row in rows)
        return [(row.act, row.verdict) for row in rows]


def test_intake_and_dispatch_of_a_step_are_one_decision(cast: Cast) -> None:
    world = World(cast, brief())
    instance = world.start()
    attempt_id = world.current(instance).governed_attempt
    with every_tenant():
        intent, attempt = DispatchIntent.objects.get(), Attempt.objects.get(id=attempt_id)
    assert intent.decision_id == attempt.decision_id
    assert at_act(attempt_id) == []
    check_record(world, instance)


def test_a_released_step_is_decided_again_when_it_is_dispatched(cast: Cast) -> None:
    world = World(cast, brief(), rules=HOLD)
    instance = world.start()
    attempt_id = world.vote(instance)
    world.dispatch(attempt_id)
    assert at_act(attempt_id) == [("dispatch", "needs_approval")]
    assert world.sent(instance) == ["ai_review.requested"]
    check_record(world, instance)


def test_a_policy_that_denies_by_then_halts_a_released_step(cast: Cast) -> None:
    world = World(cast, brief(), rules=HOLD)
    instance = world.start()
    attempt_id = world.vote(instance)
    make_policy(cast, rules=DENY)
    world.dispatch(attempt_id)
    assert (world.halted(instance), world.sent(instance)) == ("policy_denied", [])
    assert at_act(attempt_id) == [("dispatch", "deny")]
    check_record(world, instance)


def test_a_released_step_waits_for_more_people_if_more_are_asked_by_then(cast: Cast) -> None:
    world = World(cast, brief(), rules=HOLD)
    instance = world.start()
    attempt_id = world.vote(instance)
    make_policy(cast, rules=TWO)
    world.dispatch(attempt_id)
    assert (world.fresh(instance).state, world.sent(instance)) == ("waiting_approval", [])
    world.vote(instance)
    world.dispatch(attempt_id)
    assert world.sent(instance) == []
    world.vote(instance, actor=world.person(name="rosa"))
    world.dispatch(attempt_id)
    assert (world.fresh(instance).state, world.sent(instance)) == ("running", ["ai_review.requested"])
    check_record(world, instance)


def test_a_retry_that_is_denied_by_then_halts_and_goes_to_a_person(cast: Cast) -> None:
    world = World(cast, brief(max_retries=1))
    instance = world.start(at=ago(60))
    world.fail(instance, at=ago(50))
    make_policy(cast, rules=DENY)
    world.tick("step_retries_due")
    assert (world.halted(instance), world.sent(instance)) == ("policy_denied", ["ai_review.requested"])
    with every_tenant():
        attempt = Attempt.objects.get()
    assert (attempt.state, at_act(attempt.id)) == ("failed-quarantined", [("retry", "deny")])
    check_record(world, instance)


@pytest.mark.parametrize("verdict", ["approve", "reject"])
def test_a_retry_waits_for_people_if_they_are_asked_by_then(cast: Cast, verdict: str) -> None:
    world = World(cast, brief(max_retries=1))
    instance = world.start(at=ago(60))
    world.fail(instance, at=ago(50))
    make_policy(cast, rules=HOLD)
    world.tick("step_retries_due")
    assert (world.fresh(instance).state, world.current(instance).state) == ("waiting_approval", "waiting_approval")
    reason = {"reason_code": "reviewer_wrong_target"} if verdict == "reject" else {}
    attempt_id = world.vote(instance, verdict, **reason)
    if verdict == "approve":
        world.dispatch(attempt_id)
        assert (world.fresh(instance).state, len(world.sent(instance))) == ("running", 2)
    else:
        world.follow()
        assert (world.halted(instance), len(world.sent(instance))) == ("adapter_failed", 1)
        with every_tenant():
            assert Attempt.objects.get().state == "failed-quarantined"
    check_record(world, instance)


@pytest.mark.parametrize("sent_again", [False, True], ids=["before the retry", "after it"])
def test_a_success_after_a_failure_of_the_same_request_halts_and_goes_to_a_person(cast: Cast, sent_again: bool) -> None:
    world = World(cast, brief(max_retries=1))
    instance = world.start(at=ago(60))
    first = world.current(instance).id
    world.fail(instance, at=ago(50))
    if sent_again:
        world.tick("step_retries_due")
    world.complete(instance, of=first)
    assert world.halted(instance) == "outcome_unknown"
    assert len(world.sent(instance)) == (2 if sent_again else 1)
    with every_tenant():
        attempt = Attempt.objects.get()
        assert (attempt.state, attempt.reason_code) == ("failed-quarantined", "outcome_unknown")
        assert QuarantineCase.objects.get().category == "outcome_unknown"
    world.tick("step_retries_due")
    assert len(world.sent(instance)) == (2 if sent_again else 1)
    check_record(world, instance)


def test_halting_a_retry_that_waits_for_people_ends_its_review(cast: Cast) -> None:
    world = World(cast, brief(max_retries=1))
    instance = world.start(at=ago(60))
    world.fail(instance, at=ago(50))
    make_policy(cast, rules=HOLD)
    world.tick("step_retries_due")
    review = world.review(instance)
    world.intervene(instance, "halt")
    with every_tenant():
        assert Review.objects.get(id=review.id).status == "canceled"
        assert Attempt.objects.get().state == "failed-quarantined"
    check_record(world, instance)
