"""Timers of the engine: what is over, what is due again, and what counts longer."""

from workflows.engine.blocks import cancel_inside
from workflows.engine.effects import Emit
from workflows.engine.flow import time_over
from workflows.engine.inputs import DeadlinePassed, Overdue, Postponed, RetryDue, TimedOut
from workflows.engine.moves import follow, halt_everything, request, step_stop, stop_here
from workflows.engine.state import Run, StepState
from workflows.events.states import EventOutcome
from workflows.runs.states import ENDED, InstanceStatus, StepStatus

TIMED_OUT = "step_timed_out"


def timed_out(run: Run, event: TimedOut) -> None:
    step = run.state.open_by_id(event.step)
    if step is None or step.timeout_at is None or step.timeout_at > event.at:
        run.outcome = EventOutcome.STALE
        return
    if event.at >= run.state.deadline_at:  # both are over; the result must not depend on which scheduled task ran first
        deadline_passed(run, DeadlinePassed(run.state.deadline_at))
        return
    if run.state.is_block(step):
        cancel_inside(run, step, event.at, reason_code=TIMED_OUT)
        run.tokens.forget_block(step.key)
    step_stop(run, step, event.at, status=StepStatus.TIMED_OUT, reason_code=TIMED_OUT)
    outcome = run.kind(step.step_id).timeout_outcome
    if outcome:
        step.outcome = outcome
        follow(run, step, run.step(step).transitions[outcome], event.at)
    else:
        stop_here(run, step, event.at, reason_code=TIMED_OUT, halts_with=TIMED_OUT)


def deadline_passed(run: Run, event: DeadlinePassed) -> None:
    state = run.state
    if state.state in ENDED or state.state == InstanceStatus.HALTED or state.deadline_at > event.at:
        run.outcome = EventOutcome.STALE
        return
    halt_everything(run, event.at, reason_code="workflow_deadline_passed")


def retry_due(run: Run, event: RetryDue) -> None:
    step = run.state.open_by_id(event.step)
    if step is None or step.state != StepStatus.PENDING or run.state.is_block(step) or _is_early(step, event):
        run.outcome = EventOutcome.STALE
        return
    if run.kind(step.step_id).timer is not None:
        time_over(run, step, event.at)
        return
    request(run, step, event.at, again=step.retries > 0)


def _is_early(step: StepState, event: RetryDue) -> bool:
    return step.next_eligible_at is not None and step.next_eligible_at > event.at


def postponed(run: Run, event: Postponed) -> None:
    if event.step is None:
        _deadline_postponed(run, event)
        return
    step = run.state.open_by_id(event.step)
    if step is None or step.timeout_at is None or step.timeout_at >= event.until:
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


def overdue(run: Run, event: Overdue) -> None:
    """The step should have been done by now. It goes on; somebody is told."""
    step = run.state.open_by_id(event.step)
    if step is None or step.overdue or step.due_at is None or step.due_at > event.at:
        run.outcome = EventOutcome.STALE
        return
    step.overdue = True
    run.note(step, "overdue")
    payload = {"instance_id": str(run.state.id), "step_id": step.step_id, "due_at": step.due_at.isoformat()}
    run.effects.append(Emit("workflow.overdue", payload))
