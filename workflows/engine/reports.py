"""Completions and failures that modules report: whether they belong to the open step, retries, drift."""

from typing import Any

from workflows.definitions.rules.document import TERMINAL
from workflows.definitions.states import Mode
from workflows.engine.backoff import step_backoff
from workflows.engine.inputs import StepReported
from workflows.engine.moves import drifted, fail_for_good, finish, settle, step_close
from workflows.engine.run import Run
from workflows.engine.state import StepState, correlation
from workflows.events.states import EventOutcome
from workflows.runs.states import Drift, InstanceStatus, StepStatus

GATE_OUTCOME = "on_pass"  # kinds with this outcome are checks (consent, images) that a client must not skip


def reported(run: Run, event: StepReported) -> None:
    state = run.state
    if state.state in {InstanceStatus.HALTED, InstanceStatus.COMPLETED, InstanceStatus.CANCELLED}:
        run.outcome = EventOutcome.LATE
        return
    step = state.current()
    if step is None or not _is_current(run, step, event):
        _elsewhere(run, step, event)
    elif event.event_type == _failure_name(run, step):
        _failed(run, step, event)
    else:
        _completed(run, step, event)


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
    attempt = step.attempt + 1
    run.state.steps.append(
        StepState(
            id=correlation(run.state.id, step.step_id, attempt),
            step_id=step.step_id,
            kind=step.kind,
            attempt=attempt,
            state=StepStatus.PENDING,
            retries=step.retries + 1,
            next_eligible_at=due,
        )
    )
    settle(run, step, "retry", reason_code=code)


def _elsewhere(run: Run, current: StepState | None, event: StepReported) -> None:
    """A report that is not about the open step. Active: stale, or never requested. Client-driven: drift; it is kept if
    its step is still ahead."""
    run.outcome = EventOutcome.STALE
    if run.state.mode == Mode.ACTIVE:
        # An answer to something that was sent is stale, which is normal after a retry. Anything else was never
        # requested.
        sent = {step.id for step in run.state.steps if step is not current or step.state == StepStatus.IN_PROGRESS}
        if event.correlation_id not in sent:
            run.outcome, run.drift = EventOutcome.DRIFT, Drift.UNREQUESTED
        return
    run.outcome, run.drift = EventOutcome.DRIFT, Drift.UNREQUESTED
    ahead = _ahead(run, current, event.event_type) if current else None
    if ahead is None or event.payload is None:
        return
    run.drift = Drift.SKIPPED_GATE if ahead else Drift.WRONG_ORDER
    run.state.early[event.event_type] = event.payload


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
            if target == TERMINAL or target in seen:
                continue
            seen.add(target)
            completion = run.kind(target).completion
            if completion is not None and completion.name == event_type:
                return behind_gate
            waiting.append((target, behind_gate or GATE_OUTCOME in run.kind(target).outcomes))
    return None
