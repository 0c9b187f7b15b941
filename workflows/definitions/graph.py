"""The steps as a graph: what can be reached, what goes in circles, and whose output is certain to be there."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property


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
        """Begins with everything and keeps what all paths agree on (a greatest fixed point: circles do no harm)."""
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
