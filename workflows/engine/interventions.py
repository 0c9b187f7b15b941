"""What people do to a run, and from which states it is legal. The caller has checked `why_not` under the run's lock."""

from datetime import datetime

from workflows.engine.effects import Emit
from workflows.engine.flow import time_over
from workflows.engine.inputs import Intervened
from workflows.engine.moves import halt_everything, request, run_announce, set_timeout, step_close, step_stop
from workflows.engine.state import Run, StepState
from workflows.engine.tokens import ROOT_SCOPE, Turn
from workflows.events.states import EventOutcome
from workflows.runs.states import InstanceStatus, InterventionAction, StepStatus

# From which states each action is legal (S4 5.9); `retry_step` also while a step waits for its retry.
LEGAL: dict[str, frozenset[str]] = {
    InterventionAction.HALT: frozenset({"queued", "running", "waiting_approval"}),
    InterventionAction.RESUME: frozenset({"halted"}),
    InterventionAction.RETRY_STEP: frozenset({"halted", "running"}),
    InterventionAction.CANCEL: frozenset({"queued", "running", "waiting_approval", "halted"}),
    InterventionAction.SUPERSEDE: frozenset({"queued", "running", "waiting_approval", "halted"}),
    InterventionAction.MIGRATE: frozenset({"queued", "running", "waiting_approval", "halted"}),
}


GOES_ON = frozenset({InterventionAction.RETRY_STEP, InterventionAction.RESUME})


def why_not(action: InterventionAction, *, state: str, overdue: bool, under_way: str = "") -> str:
    """Why the action is not legal now, in words; empty if it is. `under_way` is the open step, unless it is pending."""
    if state not in LEGAL[action]:
        return f"The instance is {state}. This is possible from: {', '.join(sorted(LEGAL[action]))}."
    if action in GOES_ON and overdue:
        return "The workflow's deadline has passed. Supersede it to start the case again."
    if action in GOES_ON and under_way:
        return f"The step {under_way} is in progress. Halt the instance first."
    return ""


def intervened(run: Run, event: Intervened) -> None:
    {
        InterventionAction.HALT: _halt,
        InterventionAction.RESUME: _go_on,
        InterventionAction.RETRY_STEP: _go_on,
        InterventionAction.CANCEL: _cancel,
        InterventionAction.SUPERSEDE: _cancel,
    }[event.action](run, event)


def _halt(run: Run, event: Intervened) -> None:
    """Stops the run at once: answers of modules that arrive later are logged as late and change nothing."""
    halt_everything(run, event.at, reason_code=event.reason_code)


def _go_on(run: Run, event: Intervened) -> None:
    """Starts the step at which the run stopped again."""
    state = run.state
    waiting = _pending(run, event)
    if waiting is not None:  # a pending retry, which a person does not want to wait for
        if run.kind(waiting.step_id).timer is not None:
            time_over(run, waiting, event.at)
        else:
            request(run, waiting, event.at, again=waiting.retries > 0)
        return
    if state.state != InstanceStatus.HALTED:
        run.outcome = EventOutcome.STALE
        return
    halted = state.latest(state.halt_step_id) if state.tokens is None else state.by_id(state.tokens.halted)
    if halted is not None and run.kind(halted.step_id).is_terminal:
        halted.state = StepStatus.SKIPPED
    # Halted while queued: `workflow.started` was never emitted.
    if not (state.tokens.count if state.tokens else state.steps):
        run_announce(run)
    turns = (
        state.tokens.waiting if state.tokens else [Turn(ROOT_SCOPE, state.resume_step_id or run.definition.start_step)]
    )
    # Cleared, because the reason belongs to the halt that is over; the log and the ledger keep it.
    state.halt_reason = state.halt_step_id = state.resume_step_id = ""
    state.state = InstanceStatus.RUNNING
    if state.tokens is not None:
        _blocks_go_on(run, event.at)
    run.following += [(turn, event.at) for turn in turns]


def _pending(run: Run, event: Intervened) -> StepState | None:
    if run.state.tokens is None:
        return run.state.current()
    waiting = [step for step in run.state.working() if step.state == StepStatus.PENDING]
    return next((step for step in waiting if event.step in {None, step.id}), None)


def _blocks_go_on(run: Run, at: datetime) -> None:
    tokens = run.tokens
    tokens.waiting, tokens.halted = [], None
    for step in run.state.steps:
        if step.is_open:
            step.state = StepStatus.IN_PROGRESS
            if run.step(step).timeout_seconds is not None:
                set_timeout(run, step, at)


def _cancel(run: Run, event: Intervened) -> None:
    for step in [step for step in run.state.steps if step.is_open]:
        if run.state.is_block(step):
            step_close(step, StepStatus.CANCELLED, event.at, error={"reason_code": event.reason_code})
        else:
            step_stop(run, step, event.at, status=StepStatus.CANCELLED, reason_code=event.reason_code)
    if run.state.tokens is not None:
        run.state.tokens.clear()
    run.state.state = InstanceStatus.CANCELLED
    run.state.completed_at = event.at
    payload = {"instance_id": str(run.state.id), "reason": event.reason_code}
    run.effects.append(Emit("workflow.cancelled", payload))
