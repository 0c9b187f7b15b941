"""Entering and leaving steps, and halting and completing a run. The handlers of all inputs use these moves."""

from datetime import datetime, timedelta
from typing import Any

from workflows.definitions.rules.document import TERMINAL
from workflows.definitions.states import Mode
from workflows.engine.effects import SUCCEEDED, AskGate, Emit, EndReview, OpenReview, Settle
from workflows.engine.state import Run, StepState, correlation
from workflows.engine.values import CannotDecide
from workflows.kinds.base import StepAnswer, output_problems
from workflows.runs.states import Drift, InstanceStatus, StepStatus

DRIFTED = "output_contract_drift"
UNDECIDED = "condition_failed"


def run_announce(run: Run) -> None:
    """Emit that the run has started."""
    payload = {"instance_id": str(run.state.id), "definition_id": run.definition.id, "mode": run.state.mode}
    run.effects.append(Emit("workflow.started", payload))


def enter(run: Run, step_id: str, at: datetime) -> None:
    """Remember the step as the next one; `go_on` enters it."""
    # Not a direct call: steps that Holdpoint answers itself would nest calls as deep as the definition is long.
    run.following = (step_id, at)


def go_on(run: Run) -> None:
    """Enter the next step, and the one after it, until a step has to wait or the run stops."""
    while run.following is not None:
        (step_id, at), run.following = run.following, None
        _enter(run, step_id, at)


def _enter(run: Run, step_id: str, at: datetime) -> None:
    """Start a new try of the step: answered at once, requested, or awaited."""
    # The number of the try is part of the correlation id, so that an answer to an earlier try never fits this one.
    before = run.state.latest(step_id)
    attempt = before.attempt + 1 if before else 1
    step = StepState(
        id=correlation(run.state.id, step_id, attempt, secret=run.state.secret),
        step_id=step_id,
        kind=run.definition.step(step_id).kind,
        attempt=attempt,
        state=StepStatus.IN_PROGRESS,
        started_at=at,
    )
    run.state.steps.append(step)
    run.state.state = InstanceStatus.RUNNING
    if run.kind(step_id).is_terminal:
        _halt_step(run, step, at)
    elif run.state.mode == Mode.CLIENT_DRIVEN:
        _observe(run, step, at)
    else:
        request(run, step, at)


def request(run: Run, step: StepState, at: datetime, *, again: bool = False) -> None:
    """Mode active: Holdpoint itself gets the step done. A request to a module passes the gate first."""
    kind, params = run.kind(step.step_id), run.step(step).params
    if is_for_our_people(run, step):
        _await_person(run, step, at)
    elif kind.request is None:
        answer_at_once(run, step, at)
    else:
        payload = kind.payload(params, run.state.context)
        run.effects.append(
            AskGate(
                step.id,
                step.step_id,
                kind.name,
                kind.is_governed,
                kind.request.name,
                payload,
                again=again,
                operation=kind.operation,
                target=kind.target,
                scope=step.scope,
            )
        )


def is_for_our_people(run: Run, step: StepState) -> bool:
    """The step waits in our own review queue. With `module: true` the human-review module gets a request instead."""
    return bool(run.kind(step.step_id).human_tier) and not run.step(step).params.get("module")


def _await_person(run: Run, step: StepState, at: datetime) -> None:
    kind, params = run.kind(step.step_id), run.step(step).params
    step.state = StepStatus.WAITING_APPROVAL
    run.state.state = InstanceStatus.WAITING_APPROVAL
    set_timeout(run, step, at)
    run.effects.append(OpenReview(step.id, step.step_id, params[kind.human_tier]))


def answer_at_once(run: Run, step: StepState, at: datetime) -> None:
    kind = run.kind(step.step_id)
    if kind.instant is None:
        raise ValueError(f"{kind.name} has neither a request nor an answer of its own")
    try:
        answer = kind.instant(run.step(step).params, run.state.context, run.evaluator(at))
    except CannotDecide:
        settle(run, step, "failed", reason_code=UNDECIDED)
        fail_for_good(run, step, at, reason_code=UNDECIDED, halts_with=UNDECIDED)
        return
    finish(run, step, answer, at)


def set_timeout(run: Run, step: StepState, at: datetime) -> None:
    seconds = run.step(step).timeout_seconds or run.kind(step.step_id).default_timeout_seconds
    step.timeout_at = min(at + timedelta(seconds=seconds), run.state.deadline_at)


def finish(run: Run, step: StepState, answer: StepAnswer, at: datetime) -> None:
    """Complete the step: store its output in the context under the step's id, and follow the outcome."""
    # Checked before it is merged: conditions of later steps rely on the declared shape.
    if output_problems(run.kind(step.step_id), answer.output):
        drifted(run, step, at)
        return
    settle(run, step, SUCCEEDED)
    step.output = answer.output
    run.state.context[step.step_id] = answer.output
    leave(run, step, answer.outcome, at)


def drifted(run: Run, step: StepState, at: datetime) -> None:
    """The answer does not have the declared shape. The run halts, whatever `on_failure` says."""
    settle(run, step, "failed", reason_code=DRIFTED)
    step_close(step, StepStatus.FAILED, at, error={"reason_code": DRIFTED})
    run.note(step, "failed", DRIFTED)
    halt(run, at, reason_code=DRIFTED, step_id=step.step_id)


def settle(run: Run, step: StepState, result: str, *, reason_code: str = "") -> None:
    """Ask for the attempt behind the step to be settled, if there is one."""
    if run.kind(step.step_id).is_governed and run.state.mode == Mode.ACTIVE:
        run.effects.append(Settle(step.id, result, reason_code))


def leave(run: Run, step: StepState, outcome: str, at: datetime) -> None:
    step_close(step, StepStatus.COMPLETED, at, outcome=outcome)
    run.note(step, "completed", outcome)
    target = run.step(step).transitions[outcome]
    if target == TERMINAL:
        _run_complete(run, at)
    else:
        enter(run, target, at)


def step_close(step: StepState, status: StepStatus, at: datetime, *, outcome: str = "", error: Any = None) -> None:
    step.state = status
    step.outcome = outcome
    step.error = error
    step.completed_at = at
    step.timeout_at = step.next_eligible_at = None


def fail_for_good(run: Run, step: StepState, at: datetime, *, reason_code: str, halts_with: str) -> None:
    """Follow the definition's failure outcome if it has one; otherwise halt at this step with `halts_with`."""
    # The halt reason is a code of ours: a module's own code may be unknown to the reason code registry.
    detail = {"reason_code": reason_code}
    outcome = run.kind(step.step_id).failure_outcome
    target = run.step(step).transitions.get(outcome) if outcome else None
    if target is None:
        step_close(step, StepStatus.FAILED, at, error=detail)
        run.note(step, "failed", reason_code)
        halt(run, at, reason_code=halts_with, step_id=step.step_id)
    elif target != TERMINAL and run.kind(target).is_terminal:
        step_close(step, StepStatus.FAILED, at, outcome=outcome, error=detail)
        run.note(step, "failed", reason_code)
        enter(run, target, at)
    else:  # the definition handles the failure, so it is an outcome like any other
        leave(run, step, outcome, at)
        step.error = detail


def _halt_step(run: Run, step: StepState, at: datetime) -> None:
    """A step of kind `halt`."""
    # Resuming goes back to the step before: resuming at the halt step itself would only halt again.
    earlier = [one.step_id for one in run.state.steps[:-1] if one.step_id != step.step_id]
    led_here = earlier[-1] if earlier else step.step_id
    step_close(step, StepStatus.COMPLETED, at)
    halt(run, at, reason_code=run.step(step).params["reason_code"], step_id=step.step_id, resume=led_here)


def halt(run: Run, at: datetime, *, reason_code: str, step_id: str, resume: str = "") -> None:
    state = run.state
    state.state = InstanceStatus.HALTED
    state.halt_reason = reason_code
    state.halt_step_id = step_id
    state.resume_step_id = resume or step_id
    payload = {"instance_id": str(state.id), "halt_step_id": step_id, "reason_code": reason_code}
    run.effects.append(Emit("workflow.halted", payload))


def _run_complete(run: Run, at: datetime) -> None:
    run.state.state = InstanceStatus.COMPLETED
    run.state.completed_at = at
    payload = {"instance_id": str(run.state.id), "completed_at": at.isoformat()}
    run.effects.append(Emit("workflow.completed", payload))


def stop_current(run: Run, at: datetime, *, status: StepStatus, reason_code: str) -> StepState | None:
    """Close the open step: end its review, settle its attempt."""
    step = run.state.current()
    if step is None:
        return None
    if run.kind(step.step_id).is_governed:
        # A request that was sent may have had its effect; only one that was never sent can be withdrawn.
        settle(run, step, "unknown" if step.state == StepStatus.IN_PROGRESS else "withdrawn", reason_code=reason_code)
    elif step.state == StepStatus.WAITING_APPROVAL:
        run.effects.append(EndReview(step.id, reason_code))
    step_close(step, status, at, error={"reason_code": reason_code})
    run.note(step, status.value, reason_code)
    return step


def _observe(run: Run, step: StepState, at: datetime) -> None:
    """Mode client-driven: nothing is requested. Holdpoint answers what it can itself and waits for reports of the
    rest."""
    kind = run.kind(step.step_id)
    if kind.completion is None or kind.instant is not None:
        answer_at_once(run, step, at)
        return
    set_timeout(run, step, at)
    # A completion that came before its turn was kept; use it now, or the run would wait for an event that came already.
    early = run.state.early.pop(kind.completion.name, None)
    if early is not None and kind.answer is not None:
        run.drift = run.drift or Drift.WRONG_ORDER
        finish(run, step, kind.answer(run.step(step).params, early), at)
