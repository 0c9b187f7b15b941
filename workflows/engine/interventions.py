"""What people do to a run, and from which states it is legal. The caller has checked `why_not` under the run's lock."""

from workflows.engine.effects import Emit
from workflows.engine.inputs import Intervened
from workflows.engine.moves import enter, halt, request, run_announce, stop_current
from workflows.engine.state import Run
from workflows.runs.states import InstanceStatus, InterventionAction, StepStatus

# From which states each action is legal (S4 5.9); `retry_step` also while a step waits for its retry.
LEGAL: dict[str, frozenset[str]] = {
    InterventionAction.HALT: frozenset({"queued", "running", "waiting_approval"}),
    InterventionAction.RESUME: frozenset({"halted"}),
    InterventionAction.RETRY_STEP: frozenset({"halted", "running"}),
    InterventionAction.CANCEL: frozenset({"queued", "running", "waiting_approval", "halted"}),
    InterventionAction.SUPERSEDE: frozenset({"queued", "running", "waiting_approval", "halted"}),
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
    step = stop_current(run, event.at, status=StepStatus.CANCELLED, reason_code=event.reason_code)
    at_step = step.step_id if step else run.definition.start_step
    halt(run, event.at, reason_code=event.reason_code, step_id=at_step)


def _go_on(run: Run, event: Intervened) -> None:
    """Starts the step at which the run stopped again."""
    state = run.state
    waiting = state.current()
    if waiting is not None:  # a pending retry, which a person does not want to wait for
        request(run, waiting, event.at, again=waiting.retries > 0)
        return
    halted = state.latest(state.halt_step_id)
    if halted is not None and run.kind(halted.step_id).is_terminal:
        halted.state = StepStatus.SKIPPED
    if not state.steps:  # halted while queued: `workflow.started` was never emitted
        run_announce(run)
    step_id = state.resume_step_id or run.definition.start_step
    # Cleared, because the reason belongs to the halt that is over; the log and the ledger keep it.
    state.halt_reason = state.halt_step_id = state.resume_step_id = ""
    state.state = InstanceStatus.RUNNING
    enter(run, step_id, event.at)


def _cancel(run: Run, event: Intervened) -> None:
    stop_current(run, event.at, status=StepStatus.CANCELLED, reason_code=event.reason_code)
    run.state.state = InstanceStatus.CANCELLED
    run.state.completed_at = event.at
    payload = {"instance_id": str(run.state.id), "reason": event.reason_code}
    run.effects.append(Emit("workflow.cancelled", payload))
