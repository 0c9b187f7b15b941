"""Reads a document that may be any JSON, so that the rules need not check types themselves."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from governance.boundary.rules.pointers import boundary_pointer
from workflows.definitions.rules.document import DOCUMENT_SCHEMA_2, STEP_SCHEMA_2, TERMINAL, format_of, schemas_of
from workflows.definitions.rules.findings import is_plain
from workflows.kinds.base import Json, StepKind, bound_kind


@dataclass(frozen=True, slots=True)
class Edge:
    source: str
    outcome: str
    target: str
    gives_output: bool = True  # false for a final failure: the step is left without an output


class Graph:
    """Nodes in the order of the document. Edges to what is not a node (TERMINAL, typing errors) are kept apart."""

    def __init__(self, *, nodes: Iterable[str], edges: Iterable[Edge], start: str) -> None:
        self.nodes: dict[str, int] = {name: index for index, name in enumerate(nodes)}
        self.start = start
        self.out: dict[str, list[Edge]] = {name: [] for name in self.nodes}
        self.leaving: list[Edge] = []
        for edge in edges:
            (self.out[edge.source] if edge.target in self.nodes else self.leaving).append(edge)

    @cached_property
    def reachable(self) -> set[str]:
        return self._from([self.start]) if self.start in self.nodes else set()

    def after(self, name: str) -> set[str]:
        """Every step that some path from this one leads to; itself only if it is in a circle."""
        return self._from(edge.target for edge in self.out[name])

    def before(self, name: str) -> set[str]:
        """Every step from which some path leads to this one."""
        return {other for other in self.nodes if name in self._after[other]}

    @cached_property
    def _after(self) -> Mapping[str, set[str]]:
        return {name: self.after(name) for name in self.nodes}

    def _from(self, names: Iterable[str]) -> set[str]:
        seen = set(names)
        waiting = list(seen)
        while waiting:
            for edge in self.out[waiting.pop()]:
                if edge.target not in seen:
                    seen.add(edge.target)
                    waiting.append(edge.target)
        return seen

    @cached_property
    def cycles(self) -> list[list[Edge]]:
        """One circle for each set of steps that lead to each other, shortest first step in document order."""
        found, done = [], set[str]()
        for name in self.nodes:
            if name in done or name not in self._after[name]:
                continue
            together = {other for other in self._after[name] if name in self._after[other]}
            done |= together
            found.append(self._circle(name, together))
        return found

    def _circle(self, start: str, inside: set[str]) -> list[Edge]:
        """The shortest way from a step back to itself."""
        came: dict[str, Edge] = {}
        waiting = [start]
        for name in waiting:
            for edge in self.out[name]:
                if edge.target in inside and edge.target not in came:
                    came[edge.target] = edge
                    waiting.append(edge.target)
        way = [came[start]]
        while way[-1].source != start:
            way.append(came[way[-1].source])
        return way[::-1]

    def certain(self, name: str) -> set[str]:
        """The steps that every path to this one passes and leaves with an output. All, if no path leads here."""
        bits = self._certain[name]
        return {other for other, index in self.nodes.items() if bits >> index & 1}

    @cached_property
    def _certain(self) -> dict[str, int]:
        """Starts with all steps and keeps what all paths agree on: a greatest fixed point, which also ends for
        cycles."""
        known = dict.fromkeys(self.nodes, (1 << len(self.nodes)) - 1)
        waiting = [self.start] if self.start in self.nodes else []
        known |= dict.fromkeys(waiting, 0)
        while waiting:
            name = waiting.pop()
            for edge in self.out[name]:
                brought = known[name] | (1 << self.nodes[name] if edge.gives_output else 0)
                if known[edge.target] & ~brought:
                    known[edge.target] &= brought
                    waiting.append(edge.target)
        return known


_FIELDS = frozenset(DOCUMENT_SCHEMA_2["properties"]) | frozenset(STEP_SCHEMA_2["properties"])


class Reading:
    def __init__(
        self, document: Json, *, kinds: Mapping[str, StepKind], codes: Mapping[str, Collection[str]], tiers: Set[str]
    ) -> None:
        self.document = document
        self.kinds = kinds
        self.codes = codes
        self.tiers = tiers
        self.format = format_of(document)
        self.schema, self.step_schema = schemas_of(document)

    @cached_property
    def raw_steps(self) -> Json:
        steps = self.document.get("steps")
        return steps if isinstance(steps, dict) else {}

    @cached_property
    def steps(self) -> dict[str, Json]:
        """Those that are objects; the rest is a finding of the shape."""
        return {name: step for name, step in self.raw_steps.items() if isinstance(step, dict)}

    @cached_property
    def known_names(self) -> frozenset[str]:
        outcomes = (outcome for kind in self.kinds.values() for outcome in kind.outcomes)
        return _FIELDS | {name for name in self.raw_steps if is_plain(name)} | set(outcomes)

    def pointer(self, *path: str | int) -> str:
        return boundary_pointer(path, root=self.document, base="", known=self.known_names)

    def kind(self, step_id: str) -> StepKind | None:
        """As the step's params bind it. A kind that this format does not know counts as unknown."""
        name = self.steps[step_id].get("kind")
        known = self.kinds.get(name) if isinstance(name, str) else None
        if known is None or self.format not in known.formats:
            return None
        return bound_kind(known, self.params(step_id))

    def of_kind(self) -> Iterator[tuple[str, Json, StepKind]]:
        """Steps whose kind is known."""
        for step_id, step in self.steps.items():
            kind = self.kind(step_id)
            if kind is not None:
                yield step_id, step, kind

    def params(self, step_id: str) -> Json:
        """As the engine reads them: a condition's expression may stand beside its params."""
        step = self.steps[step_id]
        params = step.get("params")
        merged = dict(params) if isinstance(params, dict) else {}
        return merged | ({"expr": step["expr"]} if "expr" in step else {})

    def param_pointer(self, step_id: str, *path: str | int) -> str:
        step = self.steps[step_id]
        if path[:1] == ("expr",) and ("expr" in step or "expr" not in self.params(step_id)):
            return self.pointer("steps", step_id, *path)
        return self.pointer("steps", step_id, "params", *path)

    def targets(self, step_id: str) -> dict[str, str]:
        transitions = self.steps[step_id].get("transitions")
        given = transitions.items() if isinstance(transitions, dict) else ()
        return {outcome: target for outcome, target in given if isinstance(target, str)}

    @cached_property
    def start(self) -> str:
        start = self.document.get("start_step")
        return start if isinstance(start, str) else ""

    @cached_property
    def graph(self) -> Graph:
        return Graph(nodes=self.steps, edges=self._edges(), start=self.start)

    def _edges(self) -> Iterator[Edge]:
        for step_id in self.steps:
            kind = self.kind(step_id)
            failure = kind.failure_outcome if kind else ""
            for outcome, target in self.targets(step_id).items():
                yield Edge(step_id, outcome, target, gives_output=not failure or outcome != failure)

    @cached_property
    def ends_well(self) -> bool:
        """Some path leads to TERMINAL."""
        return any(edge.target == TERMINAL and edge.source in self.graph.reachable for edge in self.graph.leaving)


def integer_or_none(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
