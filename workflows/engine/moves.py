"""Entering and leaving steps, and halting and completing a run. The handlers of all inputs use these moves."""

from datetime import datetime, timedelta
from typing import Any

from workflows.definitions.rules.document import JOIN, TERMINAL
from workflows.definitions.states import Mode
from workflows.engine.effects import SUCCEEDED, AskGate, Emit, EndReview, OpenReview, Perform, Settle
from workflows.engine.state import Run, StepState
from workflows.engine.tokens import ROOT_SCOPE, Turn, key_of, step_of, way_to
from workflows.engine.values import CannotDecide
from workflows.kinds.base import LOOP, Json, StepAnswer, output_problems
from workflows.runs.states import Drift, InstanceStatus, StepStatus

DRIFTED = "output_contract_drift"
UNDECIDED = "condition_failed"


def run_announce(run: Run) -> None:
    """Emit that the run has started."""
    payload = {"instance_id": str(run.state.id), "definition_id": run.definition.id, "mode": run.state.mode}
    run.effects.append(Emit("workflow.started", payload))


def enter(run: Run, step_id: str, at: datetime, *, scope: str = "", before: str = "") -> None:
    """Remember the step as one that comes next; `flow.go_on` enters it. `before` is the step that led to it."""
    # Not a direct call: steps that Holdpoint answers itself would nest calls as deep as the definition is long.
    run.following.append((Turn(scope, step_id, before), at))


def end_branch(run: Run, scope: str, ended: str, at: datetime, *, reason: str = "") -> None:
    """The token of this scope has come to its end: the block around it decides what that means."""
    run.following.append((Turn(scope, ended=ended, reason=reason), at))


def request(run: Run, step: StepState, at: datetime, *, again: bool = False) -> None:
    """Mode active: Holdpoint itself gets the step done. A request to a module passes the gate first."""
    kind = run.kind(step.step_id)
    try:
        if is_for_our_people(run, step):
            _await_person(run, step, at)
        elif kind.performed:
            set_timeout(run, step, at)
            run.effects.append(Perform(step.id, step.step_id, kind.name, payload_of(run, step, at)))
        elif kind.request is not None:
            run.effects.append(_question(run, step, payload_of(run, step, at), again=again))
        elif kind.waits:
            set_timeout(run, step, at)
        else:
            answer_at_once(run, step, at)
    except CannotDecide:
        undecided(run, step, at)


def payload_of(run: Run, step: StepState, at: datetime) -> Json:
    # At the moment when the step began: what people released must be what is sent, also when it says `now()`.
    kind, params = run.kind(step.step_id), run.step(step).params
    if kind.prepare is not None:
        return kind.prepare(params, run.context(step), run.evaluator(step.scope, step.started_at or at))
    return kind.payload(params, run.context(step))


def _question(run: Run, step: StepState, payload: Json, *, again: bool) -> AskGate:
    kind = run.kind(step.step_id)
    return AskGate(
        step.id,
        step.step_id,
        kind.name,
        kind.is_governed,
        kind.request.name if kind.request else "",
        payload,
        again=again,
        operation=kind.operation,
        target=kind.target,
        scope=step.scope,
    )


def undecided(run: Run, step: StepState, at: datetime) -> None:
    """An expression of the step could not be evaluated."""
    settle(run, step, "failed", reason_code=UNDECIDED)
    fail_for_good(run, step, at, reason_code=UNDECIDED, halts_with=UNDECIDED)


def is_for_our_people(run: Run, step: StepState) -> bool:
    """The step waits in our own review queue. With `module: true` the human-review module gets a request instead."""
    return bool(run.kind(step.step_id).human_tier) and not run.step(step).params.get("module")


def _await_person(run: Run, step: StepState, at: datetime) -> None:
    kind, params = run.kind(step.step_id), run.step(step).params
    shown = payload_of(run, step, at) if kind.prepare is not None else None
    step.state = StepStatus.WAITING_APPROVAL
    run.state.state = InstanceStatus.WAITING_APPROVAL
    set_timeout(run, step, at)
    run.effects.append(OpenReview(step.id, step.step_id, params[kind.human_tier], shown))


def answer_at_once(run: Run, step: StepState, at: datetime) -> None:
    kind = run.kind(step.step_id)
    if kind.instant is None:
        raise ValueError(f"{kind.name} has neither a request nor an answer of its own")
    try:
        answer = kind.instant(run.step(step).params, run.context(step), run.evaluator(step.scope, at))
    except CannotDecide:
        undecided(run, step, at)
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
    run.state.keep(step, answer.output)
    leave(run, step, answer.outcome, at)


def drifted(run: Run, step: StepState, at: datetime) -> None:
    """The answer does not have the declared shape. The run halts, whatever `on_failure` says."""
    settle(run, step, "failed", reason_code=DRIFTED)
    step_close(step, StepStatus.FAILED, at, error={"reason_code": DRIFTED})
    run.note(step, "failed", DRIFTED)
    halt(run, at, reason_code=DRIFTED, step=step)


def settle(run: Run, step: StepState, result: str, *, reason_code: str = "") -> None:
    """Ask for the attempt behind the step to be settled, if there is one."""
    if run.kind(step.step_id).is_governed and run.state.mode == Mode.ACTIVE:
        run.effects.append(Settle(step.id, result, reason_code))


def leave(run: Run, step: StepState, outcome: str, at: datetime) -> None:
    target = run.step(step).transitions[outcome]
    if target == TERMINAL and not _gives_output(run, step, at):
        return
    step_close(step, StepStatus.COMPLETED, at, outcome=outcome)
    run.note(step, "completed", outcome)
    follow(run, step, target, at)


def follow(run: Run, step: StepState, target: str, at: datetime) -> None:
    """Where the transition of a step that has ended leads."""
    if target == JOIN:
        end_branch(run, step.scope, "completed", at)
    elif target != TERMINAL:
        enter(run, target, at, scope=step.scope, before=step.step_id)
    elif step.scope:
        raise ValueError(f"{step.step_id} ends the run from inside a block")
    else:
        _run_complete(run, at)


def _gives_output(run: Run, step: StepState, at: datetime) -> bool:
    """Whether the run's output can be evaluated; otherwise the run halts at its last step."""
    if not run.definition.output:
        return True
    evaluator = run.evaluator(step.scope, at)
    try:
        run.state.output = {name: evaluator.value(source) for name, source in run.definition.output.items()}
    except CannotDecide:
        step_close(step, StepStatus.FAILED, at, error={"reason_code": UNDECIDED})
        run.note(step, "failed", UNDECIDED)
        halt(run, at, reason_code=UNDECIDED, step=step)
        return False
    return True


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
        stop_here(run, step, at, reason_code=reason_code, halts_with=halts_with)
    elif target not in {TERMINAL, JOIN} and run.kind(target).is_terminal:
        step_close(step, StepStatus.FAILED, at, outcome=outcome, error=detail)
        run.note(step, "failed", reason_code)
        enter(run, target, at, scope=step.scope, before=step.step_id)
    else:  # the definition handles the failure, so it is an outcome like any other
        leave(run, step, outcome, at)
        step.error = detail


def stop_here(run: Run, step: StepState, at: datetime, *, reason_code: str, halts_with: str) -> None:
    """A step has failed for good and nothing in the definition follows. Inside a branch or an item its block judges
    that; otherwise the run halts."""
    if is_judged(run, step.scope):
        end_branch(run, step.scope, "failed", at, reason=reason_code)
    else:
        halt(run, at, reason_code=halts_with, step=step)


def is_judged(run: Run, scope: str) -> bool:
    """Whether a block around the scope counts failed branches. A loop does not: it has no outcome for that."""
    keys = [key_of(way) for way in way_to(scope)]
    return any(run.kind(step_of(key)).block != LOOP for key in keys)


def halt_step(run: Run, step: StepState, at: datetime, *, before: str) -> None:
    """A step of kind `halt`."""
    # Resuming goes back to the step before: resuming at the halt step itself would only halt again.
    if run.state.tokens is None:
        earlier = [one.step_id for one in run.state.steps[:-1] if one.step_id != step.step_id]
        before = earlier[-1] if earlier else ""
    else:
        run.state.tokens.halted = step.id
    step_close(step, StepStatus.COMPLETED, at)
    params = run.step(step).params
    halt(run, at, reason_code=params["reason_code"], step=step, resume=before, note=params.get("note", ""))


def halt(
    run: Run, at: datetime, *, reason_code: str, step: StepState | None = None, resume: str = "", note: str = ""
) -> None:
    """`step` is where it halts, and where resuming goes on, unless `resume` names another step of its scope. Without
    one: wherever it stands. `note`: what the definition says about it; receivers are told."""
    state = run.state
    turns = [Turn(step.scope, resume or step.step_id)] if step else []
    if state.tokens is not None:
        turns += _set_aside(run, at, reason_code)
        state.tokens.waiting = turns = turns or [Turn(ROOT_SCOPE, run.definition.start_step)]
    first = next((turn.step_id for turn in turns if turn.step_id), run.definition.start_step)
    state.state = InstanceStatus.HALTED
    state.halt_reason = reason_code
    state.halt_step_id = step.step_id if step else first
    state.resume_step_id = first
    payload = {"instance_id": str(state.id), "halt_step_id": state.halt_step_id, "reason_code": reason_code}
    payload |= {"reason_note": note} if note else {}
    run.effects.append(Emit("workflow.halted", payload))


def halt_everything(run: Run, at: datetime, *, reason_code: str) -> None:
    """Halts a run from outside, wherever it stands."""
    step = None
    if run.state.tokens is None:
        step = stop_current(run, at, status=StepStatus.CANCELLED, reason_code=reason_code)
    halt(run, at, reason_code=reason_code, step=step)


def _set_aside(run: Run, at: datetime, reason_code: str) -> list[Turn]:
    """Stops everything that goes on besides, and returns where it stood. Blocks stay: what has ended inside them is
    done, and must not be done again."""
    stood = [Turn(step.scope, step.step_id) for step in run.state.working()]
    for step in run.state.working():
        step_stop(run, step, at, status=StepStatus.CANCELLED, reason_code=reason_code)
    for step in run.state.steps:
        if step.is_open:  # a block; without a timeout, or its timer would come again and again
            step.state, step.timeout_at = StepStatus.PENDING, None
    stood += [turn for turn, _ in run.following]
    run.following.clear()
    return stood


def _run_complete(run: Run, at: datetime) -> None:
    run.state.state = InstanceStatus.COMPLETED
    run.state.completed_at = at
    payload: Json = {"instance_id": str(run.state.id), "completed_at": at.isoformat()}
    if run.state.output is not None:
        payload["output"] = run.state.output
    if run.state.tokens is not None:
        run.state.tokens.clear()
    run.effects.append(Emit("workflow.completed", payload))


def stop_current(run: Run, at: datetime, *, status: StepStatus, reason_code: str) -> StepState | None:
    """Close the open step: end its review, settle its attempt."""
    step = run.state.current()
    return step_stop(run, step, at, status=status, reason_code=reason_code) if step else None


def step_stop(run: Run, step: StepState, at: datetime, *, status: StepStatus, reason_code: str) -> StepState:
    if run.kind(step.step_id).is_governed:
        # A request that was sent may have had its effect; only one that was never sent can be withdrawn.
        settle(run, step, "unknown" if is_sent(step) else "withdrawn", reason_code=reason_code)
    elif step.state == StepStatus.WAITING_APPROVAL:
        run.effects.append(EndReview(step.id, reason_code))
    step_close(step, status, at, error={"reason_code": reason_code})
    run.note(step, status.value, reason_code)
    return step


def is_sent(step: StepState) -> bool:
    # Only a request that was sent has a timeout: a new step is in progress without one until the gate has answered.
    return step.state == StepStatus.IN_PROGRESS and step.timeout_at is not None


def observe(run: Run, step: StepState, at: datetime) -> None:
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
