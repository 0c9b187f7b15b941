"""Blocks: steps that hold other steps. Branches of a parallel, items of a for_each, rounds of a loop; and joins."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from workflows.engine.moves import (
    UNDECIDED,
    end_branch,
    enter,
    fail_for_good,
    finish,
    is_judged,
    set_timeout,
    step_close,
    step_stop,
)
from workflows.engine.state import Run, StepState
from workflows.engine.tokens import Block, Turn, is_within, key_of, name_of
from workflows.engine.values import CannotDecide
from workflows.kinds.base import LOOP, PARALLEL, Json, StepAnswer
from workflows.runs.states import StepStatus

MAX_ITEMS = 200
AT_ONCE = 10  # items of a for_each, unless it says how many
# Reason code of what a join has no more use for.
CANCELLED = "branch_cancelled"
FAILED = "adapter_failed"


def block_begin(run: Run, step: StepState, at: datetime) -> None:
    if run.step(step).timeout_seconds is not None:
        set_timeout(run, step, at)
    shape, params = run.kind(step.step_id).block, run.step(step).params
    run.tokens.blocks[step.key] = block = Block()
    if shape == PARALLEL:
        # Sorted: stored JSON keeps no order, and replay must start them as they were started.
        block.names = sorted(params["branches"])
        for name in block.names:
            enter(run, params["branches"][name], at, scope=f"{step.key}:{name}")
    elif shape == LOOP:
        _round_begin(run, step, block, at)
    else:
        _items_find(run, step, block, at)


def _items_find(run: Run, step: StepState, block: Block, at: datetime) -> None:
    try:
        items = run.evaluator(step.scope, at).value(run.step(step).params["over"])
    except CannotDecide:
        items = None
    if not isinstance(items, list) or len(items) > MAX_ITEMS:
        del run.tokens.blocks[step.key]
        fail_for_good(run, step, at, reason_code=UNDECIDED, halts_with=UNDECIDED)
        return
    block.items = items
    _judge(run, step, block, at)


def _round_begin(run: Run, step: StepState, block: Block, at: datetime) -> None:
    block.begun += 1
    enter(run, run.step(step).params["body"], at, scope=f"{step.key}:{block.begun}")


def branch_ended(run: Run, turn: Turn, at: datetime) -> None:
    """One token of a block has come to its end."""
    key = key_of(turn.scope)
    block, step = run.tokens.blocks.get(key), _holder(run, key)
    if block is None or step is None:
        raise ValueError(f"no block {key} is under way")
    if run.kind(step.step_id).block == LOOP:
        _round_ended(run, step, block, turn, at)
        return
    block.ends[name_of(turn.scope)] = turn.ended
    block.reason = block.reason or turn.reason
    if block.items is not None or turn.ended != "completed":
        run.tokens.forget(turn.scope)  # what an item gave is visible in that item only
    _judge(run, step, block, at)


def _holder(run: Run, key: str) -> StepState | None:
    return next((step for step in run.state.steps if step.is_open and step.key == key), None)


@dataclass(frozen=True, slots=True)
class _Verdict:
    """What a join says now: enough have completed, or enough cannot complete any more, or neither yet."""

    won: bool
    lost: bool


def _verdict(join: Any, block: Block) -> _Verdict:
    if join == "any":
        needed = 1
    elif isinstance(join, dict):
        needed = join["at_least"]
    else:
        needed = block.total
    still = block.total - len(block.ends)
    return _Verdict(block.completed >= needed, block.completed + still < needed)


def _judge(run: Run, step: StepState, block: Block, at: datetime) -> None:
    params = run.step(step).params
    verdict = _verdict(params.get("join", "all"), block)
    if (verdict.won or verdict.lost) and params.get("others", "finish") == "cancel":
        _cancel_others(run, step, block, at)
    if len(block.ends) == block.total:
        _close(run, step, block, verdict.won, at)
    elif block.items is not None:
        while block.begun < block.total and block.begun - len(block.ends) < params.get("max_parallel", AT_ONCE):
            block.begun += 1
            enter(run, params["body"], at, scope=f"{step.key}:{block.begun}")


def _cancel_others(run: Run, step: StepState, block: Block, at: datetime) -> None:
    ended = {f"{step.key}:{name}" for name in block.ends}
    cancel_inside(run, step, at, reason_code=CANCELLED, keep=ended)
    names = block.names if block.items is None else [str(number + 1) for number in range(block.total)]
    for name in names:
        block.ends.setdefault(name, "cancelled")


def cancel_inside(
    run: Run, step: StepState, at: datetime, *, reason_code: str, keep: frozenset[str] | set[str] = frozenset()
) -> None:
    """Ends everything that goes on inside a block. `keep` are its scopes whose outputs stay: they had ended."""
    for one in [one for one in run.state.steps if one.is_open and is_within(one.scope, step.key)]:
        if run.state.is_block(one):
            step_close(one, StepStatus.CANCELLED, at, error={"reason_code": reason_code})
            run.note(one, "cancelled", reason_code)
        else:
            step_stop(run, one, at, status=StepStatus.CANCELLED, reason_code=reason_code)
    run.following = [(turn, then) for turn, then in run.following if not is_within(turn.scope, step.key)]
    kept = {scope: run.tokens.data[scope] for scope in keep if scope in run.tokens.data}
    block = run.tokens.blocks[step.key]
    run.tokens.forget_block(step.key)
    run.tokens.blocks[step.key] = block
    run.tokens.data |= kept


def _close(run: Run, step: StepState, block: Block, won: bool, at: datetime) -> None:
    output = _output(block)
    merged: Json = {}
    for name in block.names:
        if block.ends[name] == "completed":
            merged |= run.tokens.forget(f"{step.key}:{name}")
    run.tokens.forget_block(step.key)
    for step_id, value in merged.items():
        _give(run, step, step_id, value)
    if won:
        finish(run, step, StepAnswer(outcome="on_complete", output=output), at)
    else:
        step.output = output
        run.state.keep(step, output)
        fail_for_good(run, step, at, reason_code=block.reason or FAILED, halts_with=FAILED)


def _output(block: Block) -> Json:
    if block.items is None:
        return {name: {"ended": block.ends[name]} for name in block.names}
    ends = [block.ends[str(number + 1)] for number in range(block.total)]
    return {"count": block.total, "ends": ends}


def _give(run: Run, step: StepState, step_id: str, output: Json) -> None:
    """An output of a branch or of the last round, as if its step stood beside the block."""
    if step.scope:
        run.tokens.data.setdefault(step.scope, {})[step_id] = output
    else:
        run.state.context[step_id] = output


def _round_ended(run: Run, step: StepState, block: Block, turn: Turn, at: datetime) -> None:
    params = run.step(step).params
    if turn.ended == "failed":
        _loop_failed(run, step, turn, at)
        return
    try:
        again = run.evaluator(turn.scope, at)(params["while"])
    except CannotDecide:
        run.tokens.forget_block(step.key)
        fail_for_good(run, step, at, reason_code=UNDECIDED, halts_with=UNDECIDED)
        return
    if again and block.begun < params["max_rounds"]:
        run.tokens.forget(turn.scope)
        _round_begin(run, step, block, at)
        return
    for step_id, output in run.tokens.forget(turn.scope).items():
        _give(run, step, step_id, output)
    run.tokens.forget_block(step.key)
    outcome = "on_exhausted" if again else "on_complete"
    finish(run, step, StepAnswer(outcome=outcome, output={"rounds": block.begun}), at)


def _loop_failed(run: Run, step: StepState, turn: Turn, at: datetime) -> None:
    """A loop has no outcome for a failure: the block around it judges that its branch has failed."""
    if not is_judged(run, step.scope):
        raise ValueError(f"nothing judges a failure inside {step.step_id}")
    run.tokens.forget_block(step.key)
    step_close(step, StepStatus.FAILED, at, error={"reason_code": turn.reason})
    run.note(step, "failed", turn.reason)
    end_branch(run, step.scope, "failed", at, reason=turn.reason)
