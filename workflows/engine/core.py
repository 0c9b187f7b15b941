"""The engine: `advance(definition, state, input) → new state + effects`, for reports, gate answers and timers.

No database, no clock, no randomness: replay feeds the log through it again and must reach the stored state. Entering
and leaving steps is in `moves`.
"""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from workflows.definitions.rules.document import JOIN, TERMINAL, Definition
from workflows.definitions.states import Mode
from workflows.engine.effects import AskGate, EndReview, OpenReview, Perform, SendRequest
from workflows.engine.flow import go_on
from workflows.engine.inputs import (
    DeadlinePassed,
    GateAnswered,
    Input,
    Intervened,
    Migrated,
    Overdue,
    Postponed,
    RetryDue,
    Started,
    StepReported,
    TimedOut,
)
from workflows.engine.interventions import intervened
from workflows.engine.migration import migrated
from workflows.engine.moves import (
    answer_at_once,
    drifted,
    enter,
    fail_for_good,
    finish,
    halt,
    is_for_our_people,
    is_sent,
    payload_of,
    run_announce,
    set_timeout,
    settle,
    step_close,
)
from workflows.engine.state import InstanceState, Run, StepState
from workflows.engine.timers import deadline_passed, overdue, postponed, retry_due, timed_out
from workflows.engine.tokens import Tokens
from workflows.events.states import EventOutcome
from workflows.kinds.base import StepKind
from workflows.runs.states import Drift, InstanceStatus, StepStatus

# Seconds. A throttle may answer 0 ("now"); without a minimum the scheduled task would ask again at every run.
SHORTEST_WAIT = 5


def _gate_answered(run: Run, answer: GateAnswered) -> None:
    step = run.state.open_by_id(answer.step)
    if step is None or is_sent(step) or is_for_our_people(run, step) or run.kind(step.step_id).request is None:
        run.outcome = EventOutcome.STALE
        return
    {"allow": _allowed, "hold": _held, "later": _later, "deny": _denied}[answer.verdict](run, step, answer)


def _allowed(run: Run, step: StepState, answer: GateAnswered) -> None:
    kind = run.kind(step.step_id)
    if kind.request is None:
        raise ValueError(f"{kind.name} has nothing to send")
    step.state = StepStatus.IN_PROGRESS
    step.next_eligible_at = None
    step.started_at = step.started_at or answer.at
    run.state.state = InstanceStatus.RUNNING
    run.effects.append(SendRequest(step.id, kind.request.name, payload_of(run, step, answer.at)))
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
    halt(run, answer.at, reason_code=answer.reason_code, step=step)


# Factors of the step's delay (S3: 5 s, 30 s, 2 min, 10 min for a delay of five seconds). The last one is also the
# limit.
EXPONENTIAL = (1, 6, 24, 120)


def step_backoff(*, kind: str, delay_seconds: int, retry: int) -> timedelta:
    """`retry` is 1 for the first one."""
    if kind == "fixed":
        factor = 1
    elif kind == "linear":
        factor = retry
    else:
        factor = EXPONENTIAL[min(retry, len(EXPONENTIAL)) - 1]
    return timedelta(seconds=delay_seconds * factor)


GATE_OUTCOME = "on_pass"  # kinds with this outcome are checks (consent, images) that a client must not skip


def reported(run: Run, event: StepReported) -> None:
    state = run.state
    if state.state in {InstanceStatus.HALTED, InstanceStatus.COMPLETED, InstanceStatus.CANCELLED}:
        run.outcome = EventOutcome.LATE
        return
    step = _addressed(run, event)
    if step is None or not _is_current(run, step, event):
        _elsewhere(run, step, event)
    elif event.unknown:
        _unsettled(run, step, event, "answer lost")
    elif event.event_type == _failure_name(run, step):
        _failed(run, step, event)
    else:
        _completed(run, step, event)


def _addressed(run: Run, event: StepReported) -> StepState | None:
    """The open step that the report is about. With blocks several are open."""
    state = run.state
    if state.tokens is None:
        return state.current()
    answered = state.by_id(event.correlation_id)
    if answered is not None and answered.is_open:
        return answered
    if state.mode == Mode.CLIENT_DRIVEN:
        return next((step for step in state.working() if _is_current(run, step, event)), state.current())
    # An answer to an earlier try: the open try of the same step, if there is one.
    same = (answered.step_id, answered.scope) if answered else None
    return next((step for step in state.working() if (step.step_id, step.scope) == same), None)


def _is_current(run: Run, step: StepState, event: StepReported) -> bool:
    kind = run.kind(step.step_id)
    if event.event_type not in {one.name for one in (kind.completion, kind.failure) if one}:
        return False
    if run.state.mode == Mode.CLIENT_DRIVEN:
        return True
    # Only a request that was sent can be answered. Without this check a module could complete a step that is pending,
    # held, or waiting for our own reviewers.
    awaited = StepStatus.WAITING_APPROVAL if event.by_person else StepStatus.IN_PROGRESS
    return step.state == awaited and event.correlation_id == step.id


def _failure_name(run: Run, step: StepState) -> str:
    failure = run.kind(step.step_id).failure
    return failure.name if failure else ""


def _completed(run: Run, step: StepState, event: StepReported) -> None:
    kind = run.kind(step.step_id)
    if event.payload is None or kind.answer is None:
        drifted(run, step, event.at)
        return
    finish(run, step, kind.answer(run.step(step).params, event.payload), event.at)


def _failed(run: Run, step: StepState, event: StepReported) -> None:
    if event.payload is None:
        drifted(run, step, event.at)
        return
    payload, code = event.payload, event.payload["reason_code"]
    if payload.get("retryable") is True and event.retries_allowed and _may_retry(run, step):
        due = event.at + step_backoff(
            kind=run.step(step).retry_backoff,
            delay_seconds=run.step(step).retry_delay_seconds,
            retry=step.retries + 1,
        )
        # A retry after the deadline would never run; the failure is final now.
        if due < run.state.deadline_at:
            _retry(run, step, event, code, due)
            return
    settle(run, step, "failed", reason_code=code)
    fail_for_good(run, step, event.at, reason_code=code, halts_with="adapter_failed")


def _may_retry(run: Run, step: StepState) -> bool:
    """Never for effect `once`, and not in mode client-driven, where the client retries itself."""
    once = run.kind(step.step_id).effect == "once"
    return not once and run.state.mode == Mode.ACTIVE and step.retries < run.step(step).max_retries


def _retry(run: Run, step: StepState, event: StepReported, code: str, due: Any) -> None:
    step_close(step, StepStatus.FAILED, event.at, error={"reason_code": code, "retryable": True})
    run.note(step, "failed", code)
    run.step_add(
        step.step_id,
        step.scope,
        state=StepStatus.PENDING,
        retries=step.retries + 1,
        next_eligible_at=due,
        due_at=step.due_at,
        overdue=step.overdue,
    )
    settle(run, step, "retry", reason_code=code)


def _elsewhere(run: Run, current: StepState | None, event: StepReported) -> None:
    """A report that is not about the open step. Active: stale, or never requested. Client-driven: drift; it is kept if
    its step is still ahead."""
    run.outcome = EventOutcome.STALE
    if run.state.mode == Mode.ACTIVE:
        # An answer to something that was sent is stale, which is normal after a retry. Anything else was never
        # requested.
        sent = {step.id for step in run.state.steps if not step.is_open or step.state == StepStatus.IN_PROGRESS}
        if event.correlation_id not in sent:
            run.outcome, run.drift = EventOutcome.DRIFT, Drift.UNREQUESTED
        elif current is not None and event.contradicts and _contradicts(run, current, event):
            _contradicted(run, current, event)
        return
    run.outcome, run.drift = EventOutcome.DRIFT, Drift.UNREQUESTED
    ahead = _ahead(run, current, event.event_type) if current else None
    if ahead is None or event.payload is None:
        return
    run.drift = Drift.SKIPPED_GATE if ahead else Drift.WRONG_ORDER
    run.state.early[event.event_type] = event.payload


def _contradicts(run: Run, current: StepState, event: StepReported) -> bool:
    """Whether it reports success for a try of the open step that had failed, so that it would be tried again."""
    completion = run.kind(current.step_id).completion
    failed = next((step for step in run.state.steps if step.id == event.correlation_id), None)
    return (
        failed is not None
        and (failed.step_id, failed.scope) == (current.step_id, current.scope)
        and failed.state == StepStatus.FAILED
        and bool((failed.error or {}).get("retryable"))
        and completion is not None
        and event.event_type == completion.name
        and event.payload is not None
    )


def _contradicted(run: Run, step: StepState, event: StepReported) -> None:
    """Two reports that contradict each other settle nothing: the retry does not go on."""
    run.outcome = EventOutcome.ADVANCED
    _unsettled(run, step, event, "contradicted")


def _unsettled(run: Run, step: StepState, event: StepReported, why: str) -> None:
    """Nobody knows whether it had its effect. Whatever the definition says about failures, a person finds out first."""
    settle(run, step, "unknown", reason_code="outcome_unknown")
    step_close(step, StepStatus.FAILED, event.at, error={"reason_code": "outcome_unknown"})
    run.note(step, why, "outcome_unknown")
    halt(run, event.at, reason_code="outcome_unknown", step=step)


def _ahead(run: Run, current: StepState | None, event_type: str) -> bool | None:
    """Whether a check lies between the open step and a later step that completes with this event. None: no such
    step."""
    if current is None:
        return None
    start = current.step_id
    gated = GATE_OUTCOME in run.kind(start).outcomes
    waiting, seen = [(start, gated)], {start}
    while waiting:
        step_id, behind_gate = waiting.pop(0)
        for target in run.definition.step(step_id).transitions.values():
            if target in {TERMINAL, JOIN} or target in seen:
                continue
            seen.add(target)
            completion = run.kind(target).completion
            if completion is not None and completion.name == event_type:
                return behind_gate
            waiting.append((target, behind_gate or GATE_OUTCOME in run.kind(target).outcomes))
    return None


Gate = Callable[[AskGate, InstanceState], GateAnswered]


def started(run: Run, event: Started) -> None:
    if run.state.state != InstanceStatus.QUEUED:
        run.outcome = EventOutcome.STALE
        return
    run_announce(run)
    enter(run, run.definition.start_step, event.at)


HANDLERS: dict[type, Callable[[Run, Any], None]] = {
    Started: started,
    StepReported: reported,
    GateAnswered: _gate_answered,
    TimedOut: timed_out,
    DeadlinePassed: deadline_passed,
    RetryDue: retry_due,
    Overdue: overdue,
    Postponed: postponed,
    Migrated: migrated,
    Intervened: intervened,
}


def advance(definition: Definition, kinds: Mapping[str, StepKind], state: InstanceState, happened: Input) -> Run:
    """Works on a copy; the given state is not changed."""
    return _advance(definition, kinds, state.copy(), happened)


def _advance(definition: Definition, kinds: Mapping[str, StepKind], state: InstanceState, happened: Input) -> Run:
    run = Run(definition, kinds, state)
    HANDLERS[type(happened)](run, happened)
    go_on(run)
    if state.tokens is not None and run.outcome == EventOutcome.ADVANCED:
        _sum_up(state, state.tokens, happened.at)
    return run


def _sum_up(state: InstanceState, tokens: Tokens, at: datetime) -> None:
    """The run waits for approval only when nothing else goes on in it."""
    tokens.at = max(tokens.at or at, at)
    if state.state in {InstanceStatus.RUNNING, InstanceStatus.WAITING_APPROVAL}:
        held = {step.state == StepStatus.WAITING_APPROVAL for step in state.working()}
        state.state = InstanceStatus.WAITING_APPROVAL if held == {True} else InstanceStatus.RUNNING


def drive(
    definition: Definition, kinds: Mapping[str, StepKind], state: InstanceState, happened: Input, *, gate: Gate
) -> Run:
    """`advance`, and again with the gate's answer for as long as a step asks the gate. Replay gives the recorded
    answers.

    The effects are in the order in which they must be applied; the questions to the gate are taken out.
    """
    run = advance(definition, kinds, state, happened)
    while (asked := _asked(run)) is not None:
        following = _advance(definition, kinds, run.state, gate(asked, run.state))
        # The answer's effects go where the question was: the outbox numbers events in this order.
        place = run.effects.index(asked)
        following.effects = run.effects[:place] + following.effects + run.effects[place + 1 :]
        following.path = run.path + following.path
        # The log's row is about the input that came first; the gate's answers are facts of that row.
        following.outcome, following.drift = run.outcome, run.drift or following.drift
        run = following
    if state.tokens is not None:
        _in_vain_removed(run)
    return run


def _asked(run: Run) -> AskGate | None:
    """The next question to the gate. A step that another branch has ended meanwhile asks no more."""
    questions = [one for one in run.effects if isinstance(one, AskGate)]
    for one in questions:
        if run.state.open_by_id(one.step) is not None:
            return one
        run.effects.remove(one)
    return None


def _in_vain_removed(run: Run) -> None:
    """A step that was opened and ended within one input: its review was never there, nothing is to be performed."""
    closed = {step.id for step in run.state.steps if not step.is_open}
    begun = {one.step for one in run.effects if isinstance(one, OpenReview | Perform)} & closed
    run.effects = [
        one for one in run.effects if not (isinstance(one, OpenReview | Perform | EndReview) and one.step in begun)
    ]
