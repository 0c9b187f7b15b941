"""Random documents of format 2, block in block, and random things that happen to their runs."""

from typing import Any

from hypothesis import strategies as st

from tests.workflows.engine.blocks_support import definition, step
from workflows.definitions.rules.document import JOIN, TERMINAL, Definition
from workflows.kinds.base import Json

HAPPENINGS = (
    "complete", "complete", "complete", "complete", "fail", "fail_retryable", "unfit", "again", "stale", "forged",
    "time_out", "time_out_early", "due", "due", "due_early", "overdue", "gate", "gate_elsewhere",
    "halt", "resume", "resume", "retry_step", "deadline", "cancel", "start",
)  # fmt: skip
SIMPLE = (
    "pay",
    "pay",
    "call_once",
    "call_check",
    "look_up",
    "watch",
    "request_human_review",
    "condition",
    "delay",
    "assign",
)
CONDITIONS = st.sampled_from(["sample(0.5)", "input.small < 5", "input.small > 5"] * 3 + ["nothing.value < 5"])
JOINS = st.sampled_from(["all", "all", "any", {"at_least": 2}])
OTHERS = st.sampled_from(["cancel", "finish"])
DEEPEST = 3


class _Writer:
    """Writes steps from the last to the first: each step must know where it leads."""

    def __init__(self, draw: Any) -> None:
        self.draw, self.steps = draw, dict[str, Json]()

    def sequence(self, end: str, depth: int) -> str:
        """Some steps, one after the other; returns the first of them."""
        target = end
        for _ in range(self.draw(st.integers(1, 2 if depth else 3))):
            target = self._block(target, depth) if self._nests(depth) else self._simple(target)
        return target

    def _nests(self, depth: int) -> bool:
        return depth < DEEPEST and self.draw(st.integers(0, 2)) == 0

    def _add(self, kind: str, to: Any, **fields: Any) -> str:
        name = f"s{len(self.steps)}"
        more = {"timeout_seconds": 30} if self.draw(st.integers(0, 5)) == 0 else {}
        self.steps[name] = step(kind, to, **fields, **more)
        return name

    def _simple(self, target: str) -> str:
        kind = self.draw(st.sampled_from(SIMPLE))
        if kind == "condition":
            expression = self.draw(CONDITIONS)
            return self._add(kind, self._either("on_true", "on_false", target), params={"expr": expression})
        if kind == "delay":
            return self._add(kind, target, params={"seconds": self.draw(st.sampled_from([1, 100]))})
        if kind == "assign":
            return self._add(
                kind,
                target,
                params={"values": {"x": self.draw(st.sampled_from(["1 + 1", "input.small"] * 4 + ["nothing.x"]))}},
            )
        if kind in {"call_once", "call_check"}:
            return self._add(kind, self._either("on_complete", "on_failure", target))
        retries = {"max_retries": self.draw(st.integers(0, 2))} if kind == "pay" else {}
        due = {"due_seconds": 5} if self.draw(st.booleans()) else {}
        return self._add(kind, target, **retries, **due)

    def _either(self, first: str, second: str, target: str) -> dict[str, str]:
        """The second outcome leads to a halt now and then."""
        other = self._add("halt", {}) if self.draw(st.integers(0, 3)) == 0 else target
        return {first: target, second: other}

    def _block(self, target: str, depth: int) -> str:
        kind = self.draw(st.sampled_from(["parallel", "parallel", "for_each", "loop"]))
        if kind == "loop":
            body = self.sequence(JOIN, depth + 1)
            params: Json = {"body": body, "while": self.draw(CONDITIONS), "max_rounds": self.draw(st.integers(1, 3))}
            return self._add(kind, target, params=params)
        params = {"join": self.draw(JOINS), "others": self.draw(OTHERS)}
        if kind == "parallel":
            names = ["a", "b", "c"][: self.draw(st.integers(1, 3))]
            params["branches"] = {name: self.sequence(JOIN, depth + 1) for name in names}
        else:
            params |= {"over": self.draw(st.sampled_from(["[]", "[1]", "input.three", "input.three", "input.small"]))}
            params |= {"body": self.sequence(JOIN, depth + 1), "max_parallel": self.draw(st.integers(1, 3))}
        return self._add(kind, self._either("on_complete", "on_failure", target), params=params)


@st.composite
def block_definitions(draw: Any) -> Definition:
    writer = _Writer(draw)
    last = writer._add("emit_final", TERMINAL)
    start = writer.sequence(last, 0)
    steps = {start: writer.steps.pop(start), **writer.steps}
    return definition(steps, seconds=draw(st.sampled_from([50, 1_000_000])))


def happenings(*, most: int) -> st.SearchStrategy[list[tuple[str, int]]]:
    """Each with a number that chooses whatever there is to choose."""
    rare = ("deadline", "cancel")
    common = [name for name in HAPPENINGS if name not in rare] * 3
    return st.lists(st.tuples(st.sampled_from(common + list(rare)), st.integers(0, 1000)), min_size=8, max_size=most)
