"""What comes next: entering steps, and telling blocks that a branch has ended, until all waits or the run stops."""

from datetime import datetime, timedelta

from workflows.definitions.states import Mode
from workflows.engine.blocks import block_begin, branch_ended
from workflows.engine.moves import finish, halt_step, observe, request, undecided
from workflows.engine.state import Run, StepState
from workflows.engine.tokens import Turn
from workflows.engine.values import CannotDecide
from workflows.runs.states import InstanceStatus, StepStatus


def go_on(run: Run) -> None:
    """Enter the next step, and the one after it, until a step has to wait or the run stops."""
    while run.following:
        turn, at = run.following.pop(0)
        if turn.ended:
            branch_ended(run, turn, at)
        else:
            _enter(run, turn, at)


def _enter(run: Run, turn: Turn, at: datetime) -> None:
    """Start a new try of the step: answered at once, requested, or awaited."""
    due = run.definition.step(turn.step_id).due_seconds
    step = run.step_add(
        turn.step_id,
        turn.scope,
        state=StepStatus.IN_PROGRESS,
        started_at=at,
        due_at=at + timedelta(seconds=due) if due else None,
    )
    run.state.state = InstanceStatus.RUNNING
    kind = run.kind(turn.step_id)
    if kind.is_terminal:
        halt_step(run, step, at, before=turn.before)
    elif kind.block:
        block_begin(run, step, at)
    elif kind.timer is not None:
        _wait_until(run, step, at)
    elif run.state.mode == Mode.CLIENT_DRIVEN:
        observe(run, step, at)
    else:
        request(run, step, at)


def _wait_until(run: Run, step: StepState, at: datetime) -> None:
    """The same row and the same timer as of a retry: nothing runs, and nothing is asked, until then."""
    kind, evaluator = run.kind(step.step_id), run.evaluator(step.scope, at)
    if kind.timer is None:
        raise ValueError(f"{kind.name} has no time to wait for")
    try:
        until = kind.timer(run.step(step).params, run.context(step), evaluator, at)
    except CannotDecide:
        undecided(run, step, at)
        return
    step.next_eligible_at = max(until, at)
    if until <= at:
        time_over(run, step, at)
    else:
        step.state = StepStatus.PENDING


def time_over(run: Run, step: StepState, at: datetime) -> None:
    """The step has waited long enough, or a person does not want to wait for it any longer."""
    timer = run.kind(step.step_id)
    if timer.answered is None:
        raise ValueError(f"{timer.name} does not say what it gives")
    finish(run, step, timer.answered(step.next_eligible_at or at), at)
