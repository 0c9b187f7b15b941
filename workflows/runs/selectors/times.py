"""Until when the time of a run and of its step really lasts. A step's time counts from the publication of its request;
time in which Holdpoint could not act does not count."""

from datetime import datetime, timedelta

from governance.outages.selectors import deadline_in_force
from workflows.events.models import OutboxEvent, WorkflowEvent
from workflows.runs.models import WorkflowInstance, WorkflowStep
from workflows.runs.selectors.locked import definition_of, kind_of

POSTPONED = "instance.postponed"  # the event's name in the log; stored, so it never changes


def deadline_given(*, instance: WorkflowInstance) -> datetime:
    """The deadline with which the run began. It may have been postponed since, by its log."""
    moved = WorkflowEvent.objects.filter(instance=instance, event_type=POSTPONED, correlation_id=None)
    first = moved.order_by("number").values_list("at", flat=True).first()
    return first or instance.deadline_at


def run_deadline(*, instance: WorkflowInstance, now: datetime) -> datetime:
    # From the deadline as it was given: an outage that postponed it before would otherwise count twice.
    return deadline_in_force(deadline_given(instance=instance), began=instance.created_at, now=now)


def step_timeout(*, step: WorkflowStep, instance: WorkflowInstance, now: datetime) -> datetime:
    """When the step's time is over, as far as is known now. While its request is not published, no time has passed."""
    began = _began(step)
    given = _seconds(step, instance)
    if began is None:
        return now + given
    return deadline_in_force(began + given, began=began, now=now)


def _began(step: WorkflowStep) -> datetime | None:
    """None: its request waits to be published. Steps that wait for our own people, or that only watch, have none."""
    if step.request_event is not None:
        request = OutboxEvent.objects.filter(id=step.request_event).values_list("sent_at").first()
        if request is not None:
            return request[0]
    return step.started_at


def _seconds(step: WorkflowStep, instance: WorkflowInstance) -> timedelta:
    own, kind = definition_of(instance).step(step.step_id).timeout_seconds, kind_of(instance, step.step_id)
    if kind is None:
        raise ValueError(f"there is no step kind {step.step_kind}")
    return timedelta(seconds=own or kind.default_timeout_seconds)
