"""A careful reading of a document that may be anything: rules ask it, and need not fear what they find."""

from collections.abc import Iterator, Mapping, Set
from functools import cached_property
from typing import Any

from governance.boundary.pointers import pointer_to
from workflows.definitions.document import TERMINAL
from workflows.definitions.findings import is_plain
from workflows.definitions.graph import Edge, Graph
from workflows.definitions.schema import DOCUMENT_SCHEMA, STEP_SCHEMA
from workflows.kinds.base import Json, StepKind

_FIELDS = frozenset(DOCUMENT_SCHEMA["properties"]) | frozenset(STEP_SCHEMA["properties"])


class Reading:
    def __init__(
        self, document: Json, *, kinds: Mapping[str, StepKind], codes: Mapping[str, Set[str]], tiers: Set[str]
    ) -> None:
        self.document = document
        self.kinds = kinds
        self.codes = codes
        self.tiers = tiers

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
        return pointer_to(path, root=self.document, base="", known=self.known_names)

    def kind(self, step_id: str) -> StepKind | None:
        name = self.steps[step_id].get("kind")
        return self.kinds.get(name) if isinstance(name, str) else None

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


def integer(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
