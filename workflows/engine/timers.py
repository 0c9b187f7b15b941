"""Timers of the engine: what is over, what is due again, and what counts longer."""

from workflows.engine.inputs import DeadlinePassed, Postponed, RetryDue, TimedOut
from workflows.engine.moves import halt, request, stop_current
from workflows.engine.state import Run, StepState
from workflows.events.states import EventOutcome
from workflows.runs.states import ENDED, InstanceStatus, StepStatus


def timed_out(run: Run, event: TimedOut) -> None:
    step = run.state.current()
    if step is None or step.id != event.step or step.timeout_at is None or step.timeout_at > event.at:
        run.outcome = EventOutcome.STALE
        return
    if event.at >= run.state.deadline_at:  # both are over; the result must not depend on which scheduled task ran first
        deadline_passed(run, DeadlinePassed(run.state.deadline_at))
        return
    stop_current(run, event.at, status=StepStatus.TIMED_OUT, reason_code="step_timed_out")
    halt(run, event.at, reason_code="step_timed_out", step_id=step.step_id)


def deadline_passed(run: Run, event: DeadlinePassed) -> None:
    state = run.state
    if state.state in ENDED or state.state == InstanceStatus.HALTED or state.deadline_at > event.at:
        run.outcome = EventOutcome.STALE
        return
    step = stop_current(run, event.at, status=StepStatus.CANCELLED, reason_code="workflow_deadline_passed")
    at_step = step.step_id if step else run.definition.start_step
    halt(run, event.at, reason_code="workflow_deadline_passed", step_id=at_step)


def retry_due(run: Run, event: RetryDue) -> None:
    step = run.state.current()
    if step is None or step.id != event.step or step.state != StepStatus.PENDING or _is_early(step, event):
        run.outcome = EventOutcome.STALE
        return
    request(run, step, event.at, again=step.retries > 0)


def _is_early(step: StepState, event: RetryDue) -> bool:
    return step.next_eligible_at is not None and step.next_eligible_at > event.at


def postponed(run: Run, event: Postponed) -> None:
    if event.step is None:
        _deadline_postponed(run, event)
        return
    step = run.state.current()
    if step is None or step.id != event.step or step.timeout_at is None or step.timeout_at >= event.until:
        run.outcome = EventOutcome.STALE
        return
    step.timeout_at = min(event.until, run.state.deadline_at)
    run.note(step, "postponed")


def _deadline_postponed(run: Run, event: Postponed) -> None:
    state = run.state
    if state.state in ENDED or state.state == InstanceStatus.HALTED or state.deadline_at >= event.until:
        run.outcome = EventOutcome.STALE
        return
    state.deadline_at = event.until
    run.path.append("deadline postponed")
