"""Runs from case.created to their end, through the services, with every gate and row real."""

import pytest
from django.utils import timezone

from attempts.execution.models import DispatchIntent, Receipt
from attempts.lifecycle.models import Attempt
from attempts.reviews.models import Review
from attempts.reviews.services.human_review import human_review_decide
from attempts.reviews.states import VoteVerdict
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.workflows.running import Running
from workflows.runs.models import Nudge, WorkflowStep
from workflows.runs.services.replay import instance_replay
from workflows.runs.services.signal_follow import signal_follow

pytestmark = pytest.mark.django_db


@pytest.fixture
def running(cast: Cast) -> Running:
    return Running(cast)


def follow_all() -> None:
    with every_tenant():
        for signal in Nudge.objects.all():
            signal_follow(signal_id=signal.id, at=timezone.now(), region="US")


def test_a_case_goes_from_created_to_completed(running: Running) -> None:
    instance = running.start()
    assert instance.state == "running"
    assert [row.event_type for row in running.requests(instance)] == ["workflow.started", "consent.check.requested"]
    running.answer(instance)
    running.answer(instance)
    assert running.requests(instance)[-1].event_type == "ai_review.requested"
    running.answer(instance)
    instance = running.fresh(instance)
    step = running.current(instance)
    assert step is not None
    assert (instance.state, step.step_id) == ("waiting_approval", "customer_review")
    with every_tenant():
        review = Review.objects.get(origin_step=step.id)
        human_review_decide(
            actor=running.cast.actor(running.cast.reviewer, [running.organization]),
            at=timezone.now(),
            review_id=review.id,
            verdict=VoteVerdict.CONFIRM,
            action_digest=review.action_digest,
        )
    follow_all()
    instance = running.fresh(instance)
    assert instance.state == "completed"
    with every_tenant():
        assert set(WorkflowStep.objects.filter(instance=instance).values_list("state", flat=True)) == {"completed"}
        attempts = list(Attempt.objects.order_by("id"))
        assert [(one.operation, one.state) for one in attempts] == [
            ("ai_review.requested", "completed"),
            ("case.workflow.completed", "completed"),
        ]
        assert DispatchIntent.objects.count() == Receipt.objects.count() == 2
        replayed = instance_replay(instance=instance)
        assert replayed.differences == []
        assert replayed.events == 5
