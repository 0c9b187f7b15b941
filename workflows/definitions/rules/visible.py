"""Which outputs a step of format 2 can read: on every path (certain), and on some path (possible). Pure.

After a block also the outputs of the bodies that completed are there: of all branches, if its join waits for all of
them, and of a loop's last round. What a for_each's items gave is visible in that item only.
"""

from collections.abc import Iterable
from functools import cached_property
from typing import Any

from workflows.definitions.rules.blocks import BlockReading, Body
from workflows.definitions.rules.document import TERMINAL
from workflows.kinds.base import FOR_EACH, LOOP, PARALLEL

Bits = int


class Visible:
    """`certain` is a greatest and `possible` a least fixed point, so that both also end for circles."""

    def __init__(self, reading: BlockReading) -> None:
        self.reading = reading
        self.blocks = reading.blocks
        self.number = {step: index for index, step in enumerate(reading.steps)}
        self.all = (1 << len(self.number)) - 1

    def certain(self, step: str) -> set[str]:
        """All steps, if no path leads here."""
        return self._named(self._certain[step])

    def possible(self, step: str) -> set[str]:
        return self._named(self._possible[step])

    def certain_at_end(self) -> set[str]:
        """Wherever the run reaches TERMINAL."""
        return self._named(self._ended(self._certain, self._root_ends(), certain=True))

    def possible_at_end(self) -> set[str]:
        return self._named(self._ended(self._possible, self._root_ends(), certain=False))

    def certain_in_round(self, body: Body) -> set[str]:
        """When a round of a loop has ended: what its `while` reads."""
        return self._named(self._ended(self._certain, self.blocks.joins(body), certain=True))

    def possible_in_round(self, body: Body) -> set[str]:
        return self._named(self._ended(self._possible, self.blocks.joins(body), certain=False))

    def _root_ends(self) -> list[tuple[str, str]]:
        return [
            (step, outcome)
            for step, outcome, body in self.blocks.ends(TERMINAL)
            if body.is_root and step in self.reading.entered
        ]

    def _named(self, bits: Bits) -> set[str]:
        return {step for step, index in self.number.items() if bits >> index & 1}

    @cached_property
    def _certain(self) -> dict[str, Bits]:
        known = dict.fromkeys(self.number, self.all)
        known |= {body.start: 0 for body in self.blocks.bodies if body.is_root and body.start in known}
        self._settle(known, certain=True)
        return known

    @cached_property
    def _possible(self) -> dict[str, Bits]:
        known = dict.fromkeys(self.number, 0)
        self._settle(known, certain=False)
        return known

    def _settle(self, known: dict[str, Bits], *, certain: bool) -> None:
        changed = True
        while changed:
            changed = False
            for source in self.number:
                if source not in self.reading.entered:
                    continue  # what no path leads to says nothing about where it leads
                for target, brought in self._brought(source, known, certain=certain):
                    merged = known[target] & brought if certain else known[target] | brought
                    changed = changed or merged != known[target]
                    known[target] = merged

    def _brought(self, source: str, known: dict[str, Bits], *, certain: bool) -> Iterable[tuple[str, Bits]]:
        for body in self.blocks.held_by(source):
            if body.start in known:
                yield body.start, known[source]
        for outcome, target in self.reading.targets(source).items():
            if target in known:
                yield target, self._after(source, outcome, known, certain=certain)

    def _after(self, source: str, outcome: str, known: dict[str, Bits], *, certain: bool) -> Bits:
        """What is there when the step has been left by this outcome."""
        own = 1 << self.number[source]
        bits = known[source] | (own if not certain or self._gives_output(source, outcome) else 0)
        for body in self.blocks.held_by(source):
            if body.shape == FOR_EACH or (certain and not self._body_completed(source, outcome)):
                continue
            bits |= self._ended(known, self.blocks.joins(body), certain=certain)
        return bits

    def _ended(self, known: dict[str, Bits], ends: Iterable[tuple[str, str]], *, certain: bool) -> Bits:
        """What all, or any, of these transitions bring."""
        bits = self.all if certain else 0
        for step, outcome in ends:
            brought = self._after(step, outcome, known, certain=certain)
            bits = bits & brought if certain else bits | brought
        return bits

    def _gives_output(self, step: str, outcome: str) -> bool:
        kind = self.reading.kind(step)
        if kind is None:
            return True
        if kind.block:  # says how its bodies ended, unless its time was over
            return outcome != kind.timeout_outcome or not self._may_time_out(step)
        return outcome not in {kind.failure_outcome, kind.timeout_outcome}

    def _body_completed(self, step: str, outcome: str) -> bool:
        kind = self.reading.kind(step)
        if kind is None or (outcome == kind.timeout_outcome and (kind.block != LOOP or self._may_time_out(step))):
            return False
        return kind.block != PARALLEL or waits_for_all(self.reading.params(step))

    def _may_time_out(self, step: str) -> bool:
        return "timeout_seconds" in self.reading.steps[step]


def waits_for_all(params: dict[str, Any]) -> bool:
    join, branches = params.get("join", "all"), params.get("branches")
    if isinstance(join, dict):
        return isinstance(branches, dict) and join.get("at_least") == len(branches)
    return join == "all" or (join == "any" and isinstance(branches, dict) and len(branches) == 1)
