"""The gate's answers about a step's request: it is sent, waits for a person, is asked for again later, or is denied."""

from datetime import timedelta

from workflows.engine.effects import SendRequest
from workflows.engine.inputs import GateAnswered
from workflows.engine.moves import answer_at_once, halt, is_for_our_people, set_timeout, settle, step_close
from workflows.engine.run import Run
from workflows.engine.state import StepState
from workflows.events.states import EventOutcome
from workflows.runs.states import InstanceStatus, StepStatus

# Seconds. A throttle may answer 0 ("now"); without a minimum the scheduled task would ask again at every run.
SHORTEST_WAIT = 5


def gate_answered(run: Run, answer: GateAnswered) -> None:
    step = run.state.current()
    if step is None or step.id != answer.step or _is_sent(step) or is_for_our_people(run, step):
        run.outcome = EventOutcome.STALE
        return
    {"allow": _allowed, "hold": _held, "later": _later, "deny": _denied}[answer.verdict](run, step, answer)


def _is_sent(step: StepState) -> bool:
    """An answer now comes too late."""
    # Only a request that was sent has a timeout: a new step is in progress without one until the gate has answered.
    return step.state == StepStatus.IN_PROGRESS and step.timeout_at is not None


def _allowed(run: Run, step: StepState, answer: GateAnswered) -> None:
    kind = run.kind(step.step_id)
    if kind.request is None:
        raise ValueError(f"{kind.name} has nothing to send")
    step.state = StepStatus.IN_PROGRESS
    step.next_eligible_at = None
    step.started_at = step.started_at or answer.at
    run.state.state = InstanceStatus.RUNNING
    run.effects.append(SendRequest(step.id, kind.request.name, kind.payload(run.step(step).params, run.state.context)))
    run.note(step, "requested")
    if kind.completion is None or kind.instant is not None:  # done with being sent
        answer_at_once(run, step, answer.at)
    else:
        set_timeout(run, step, answer.at)


def _held(run: Run, step: StepState, answer: GateAnswered) -> None:
    step.state = StepStatus.WAITING_APPROVAL
    step.next_eligible_at = step.timeout_at = None
    run.state.state = InstanceStatus.WAITING_APPROVAL
    run.note(step, "held", answer.reason_code)


def _later(run: Run, step: StepState, answer: GateAnswered) -> None:
    """A throttle or a cap is full, and nothing was sent. The step asks again, until the workflow's deadline."""
    due = answer.at + timedelta(seconds=max(answer.retry_after, SHORTEST_WAIT))
    # Waiting past the deadline would end as `workflow_deadline_passed` and hide the real reason.
    if due >= run.state.deadline_at:
        _denied(run, step, answer)
        return
    step.state = StepStatus.PENDING
    step.next_eligible_at = due
    run.state.state = InstanceStatus.RUNNING
    run.note(step, "put off", answer.reason_code)


def _denied(run: Run, step: StepState, answer: GateAnswered) -> None:
    # Also after an earlier try: without this the attempt behind the step would stay open for ever.
    settle(run, step, "withdrawn", reason_code=answer.reason_code)
    step_close(step, StepStatus.FAILED, answer.at, error={"reason_code": answer.reason_code})
    run.note(step, "denied", answer.reason_code)
    halt(run, answer.at, reason_code=answer.reason_code, step_id=step.step_id)
