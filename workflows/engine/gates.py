"""The hold point's answers: a step's request goes out, waits for a person, is asked for again later, or never."""

from datetime import timedelta

from workflows.engine.effects import SendRequest
from workflows.engine.inputs import GateAnswered
from workflows.engine.moves import answer_at_once, halt, is_for_our_people, set_timeout, settle, step_close
from workflows.engine.run import Run
from workflows.engine.state import StepState
from workflows.events.states import EventOutcome
from workflows.runs.states import InstanceStatus, StepStatus

SHORTEST_WAIT = 5


def gate_answered(run: Run, answer: GateAnswered) -> None:
    step = run.state.current()
    if step is None or step.id != answer.step or _is_sent(step) or is_for_our_people(run, step):
        run.outcome = EventOutcome.STALE
        return
    {"allow": _allowed, "hold": _held, "later": _later, "deny": _denied}[answer.verdict](run, step, answer)


def _is_sent(step: StepState) -> bool:
    """Whatever is said now comes too late. What was sent has a time by which it must end."""
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
    """Nothing was sent: over a throttle or a cap. It is asked for again; only the workflow's deadline ends that."""
    due = answer.at + timedelta(seconds=max(answer.retry_after, SHORTEST_WAIT))
    if due >= run.state.deadline_at:
        _denied(run, step, answer)
        return
    step.state = StepStatus.PENDING
    step.next_eligible_at = due
    run.state.state = InstanceStatus.RUNNING
    run.note(step, "put off", answer.reason_code)


def _denied(run: Run, step: StepState, answer: GateAnswered) -> None:
    """Also at a later try: an attempt that waited for it must not wait for ever."""
    settle(run, step, "withdrawn", reason_code=answer.reason_code)
    step_close(step, StepStatus.FAILED, answer.at, error={"reason_code": answer.reason_code})
    run.note(step, "denied", answer.reason_code)
    halt(run, answer.at, reason_code=answer.reason_code, step_id=step.step_id)
