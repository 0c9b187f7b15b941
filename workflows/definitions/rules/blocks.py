"""The blocks of a document of format 2: which steps belong to which branch or body. Pure.

A *body* is what one token goes through: the workflow itself (the root), a branch of a parallel, the body of a for_each
or of a loop. It begins at one step and ends where a transition leads to JOIN. Every step belongs to exactly one body,
except steps that halt the run.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

from workflows.definitions.rules.document import JOIN, TERMINAL
from workflows.definitions.rules.findings import is_plain
from workflows.definitions.rules.reading import Reading
from workflows.kinds.base import FOR_EACH, LOOP, PARALLEL, Json, StepKind
from workflows.kinds.template import OPEN_TEMPLATE, TEMPLATE

# Each level adds a segment to the scope of every step inside, and people must still understand the picture.
MAX_NESTING = 4


@dataclass(frozen=True, slots=True)
class Body:
    """`block` is the step that holds it, `name` that of a branch; both are empty for the root."""

    block: str
    name: str
    start: str
    shape: str  # PARALLEL, FOR_EACH or LOOP; empty for the root

    @property
    def is_root(self) -> bool:
        return not self.block

    @property
    def words(self) -> str:
        """For messages."""
        if self.is_root:
            return "the workflow outside of all blocks"
        block = f"'{self.block}'" if is_plain(self.block) else "a block"
        if self.shape != PARALLEL:
            return f"the body of {block}"
        return f"the branch '{self.name}' of {block}" if is_plain(self.name) else f"a branch of {block}"


@dataclass(frozen=True, slots=True)
class Crossing:
    """A transition, or the beginning of a body, that leads to a step of another body."""

    way: tuple[str, ...]  # from the step: its place in the document
    source: str
    target: str
    here: Body
    there: Body


@dataclass(slots=True)
class Blocks:
    reading: Reading
    crossings: list[Crossing] = field(default_factory=list)
    bodies: dict[Body, list[str]] = field(default_factory=dict)  # with their steps
    of: dict[str, Body] = field(default_factory=dict)  # step: its body
    held: dict[str, list[Body]] = field(default_factory=dict)  # block: its bodies

    def __post_init__(self) -> None:
        root = Body("", "", self.reading.start, "")
        inner = list(self._begun())
        self._begin(root, ())
        for body in inner:
            self._begin(body, body_place(body))
        # From the outside in: a branch that leads out of its block is at fault, not the step that it leads to.
        waiting = [root]
        while waiting:
            here = waiting.pop(0)
            self._fill(here)
            waiting += [body for body in inner if self.of.get(body.block) == here and body != here]
            inner = [body for body in inner if body not in waiting]
            if not waiting and inner:
                waiting.append(inner.pop(0))  # no path leads to its block

    def _begun(self) -> Iterator[Body]:
        for step_id, _, kind in self.reading.of_kind():
            for name, start in entries(kind, self.reading.params(step_id)):
                yield Body(step_id, name, start, kind.block)

    def _begin(self, body: Body, way: tuple[str, ...]) -> None:
        self.bodies[body] = []
        if not body.is_root:
            self.held.setdefault(body.block, []).append(body)
        if body.start in self.reading.steps:
            self._take(body, body.start, way, body.block)

    def _fill(self, body: Body) -> None:
        waiting = list(self.bodies[body])
        while waiting:
            source = waiting.pop(0)
            for outcome, target in self.reading.targets(source).items():
                if target in self.reading.steps and self._take(body, target, ("transitions", outcome), source):
                    waiting.append(target)

    def _take(self, body: Body, step: str, way: tuple[str, ...], source: str) -> bool:
        """Whether the step is a new one of this body."""
        there = self.of.setdefault(step, body)
        kind = self.reading.kind(step)
        if there != body and kind is not None and kind.is_terminal and way[0] == "transitions":
            return False  # it halts the whole run, wherever it is reached from, so bodies may share it
        if there != body:
            self.crossings.append(Crossing(way, source, step, body, there))
            return False
        if step in self.bodies[body]:
            return False
        self.bodies[body].append(step)
        return True

    def inside(self, step: str) -> list[Body]:
        """The bodies that the step lies in, the innermost first, without the root."""
        found: list[Body] = []
        body = self.of.get(step)
        while body is not None and not body.is_root and body not in found:
            found.append(body)
            body = self.of.get(body.block)
        return found

    def held_by(self, block: str) -> list[Body]:
        return self.held.get(block, [])

    @property
    def is_sound(self) -> bool:
        """Bodies are nested properly. Otherwise nothing can be said about what their steps read."""
        return not self.crossings and all(
            body.is_root or body.block not in {one.block for one in self.inside(body.block)} for body in self.bodies
        )

    def depth(self, body: Body) -> int:
        return 0 if body.is_root else 1 + len(self.inside(body.block))

    def joins(self, body: Body) -> Iterator[tuple[str, str]]:
        """(step, outcome) of every transition of the body that leads to JOIN."""
        for step in self.bodies[body]:
            for outcome, target in self.reading.targets(step).items():
                if target == JOIN:
                    yield step, outcome

    def ends(self, target: str) -> Iterator[tuple[str, str, Body]]:
        """(step, outcome, body) of every transition to TERMINAL or to JOIN."""
        for step, body in self.of.items():
            for outcome, one in self.reading.targets(step).items():
                if one == target:
                    yield step, outcome, body


_PARAMS: dict[int, tuple[Json, Json]] = {}


def _with_templates(kind: StepKind) -> Json:
    """The kind's params schema, with templates of format 2 where it has some of format 1. One object for each kind,
    so that it is compiled once."""
    given = kind.params_schema
    properties = {name: OPEN_TEMPLATE for name in kind.templates if given["properties"].get(name) is TEMPLATE}
    if not properties:
        return given
    known = _PARAMS.get(id(given))
    if known is None or known[0] is not given:
        known = _PARAMS[id(given)] = (given, given | {"properties": given["properties"] | properties})
    return known[1]


def entries(kind: StepKind, params: dict[str, object]) -> Iterator[tuple[str, str]]:
    """(name of the branch or nothing, first step) of the bodies that a step of this kind holds."""
    branches, body = params.get("branches"), params.get("body")
    if kind.block == PARALLEL and isinstance(branches, dict):
        yield from ((name, start) for name, start in branches.items() if isinstance(start, str))
    elif kind.block in (FOR_EACH, LOOP) and isinstance(body, str):
        yield "", body


def body_place(body: Body) -> tuple[str, ...]:
    """Where in the block's step the body begins."""
    return ("params", "branches", body.name) if body.shape == PARALLEL else ("params", "body")


class BlockReading(Reading):
    """A reading of a document of format 2: its graph also leads from a block to the steps inside."""

    @cached_property
    def blocks(self) -> Blocks:
        return Blocks(self)

    def kind(self, step_id: str) -> StepKind | None:
        if step_id not in self._kinds:
            found = super().kind(step_id)
            self._kinds[step_id] = found and replace(found, params_schema=_with_templates(found))
        return self._kinds[step_id]

    @cached_property
    def _kinds(self) -> dict[str, StepKind | None]:
        return {}

    @cached_property
    def entered(self) -> set[str]:
        """Every step that some path leads to, through blocks as well."""
        seen = {self.start} & set(self.steps)
        waiting = list(seen)
        while waiting:
            name = waiting.pop()
            inside = {body.start for body in self.blocks.held_by(name)}
            for target in (inside | set(self.targets(name).values())) & set(self.steps) - seen:
                seen.add(target)
                waiting.append(target)
        return seen

    @cached_property
    def ends_well(self) -> bool:
        return any(
            target == TERMINAL and self.blocks.of[step].is_root
            for step in self.entered
            if step in self.blocks.of
            for target in self.targets(step).values()
        )
