"""What a step kind is: everything that the engine, the validator, the API and the modules' contract need to know of it.

Pure: no database, no clock. A kind is one module with a `KIND`. The engine and the validator decide by its fields and
not by its name. Outside this package kinds are named in `static/workflows/graph.css` (colours; the others get the plain
one), in `webhooks/selectors.py` (which event names `emit_webhook` steps use), in the starters, and, by their event
types, in the webhook rules and the simulator's answers.

The context that `payload` and `instant` get has one object per completed step, by step id, and beside them the strings
and lists of `ROOT`, which belong to no step.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]
# What a context holds besides the steps' outputs; `patient_id` and `image_ids` are what `case.created` referred to.
ROOT: tuple[str, ...] = ("case_id", "org_id", "product_id", "definition_id", "instance_id", "patient_id", "image_ids")
# Of these a condition may read, and a snapshot of the context shows (S4 3.6).
ROOT_SHOWN: tuple[str, ...] = ("case_id", "org_id", "product_id")


@dataclass(frozen=True, slots=True, kw_only=True)
class EventType:
    """One versioned event that a module and Holdpoint exchange; `schema` is that of its payload."""

    name: str
    direction: str  # "out": Holdpoint emits it; "in": a module does
    description: str
    schema: Json
    version: str = "v1"
    dropped: tuple[str, ...] = ()  # accepted for compatibility and never stored


@dataclass(frozen=True, slots=True, kw_only=True)
class StepAnswer:
    """What a completion says: the outcome it leads to, and what is merged into the context."""

    outcome: str
    output: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class StepKind:
    name: str
    title: str
    description: str
    params_schema: Json
    outcomes: tuple[str, ...]  # empty: the step ends the workflow (halt)
    output_schema: Json
    effect: str  # "none", "idempotent" or "once"; `once` is what nothing declared means
    module: str = ""  # who answers; empty: Holdpoint itself, at once
    endpoint: str = ""  # what a client-driven caller would call, such as "POST /reviews"
    request: EventType | None = None
    completion: EventType | None = None
    failure: EventType | None = None
    failure_outcome: str = ""  # taken when a failure is final; empty: the workflow halts
    default_timeout_seconds: int = 3600
    human_tier: str = ""  # name of the param that holds a reviewer tier: the step waits in the review queue
    must_target: Mapping[str, str] = field(default_factory=dict)  # outcome: the only target allowed
    # Names of params that the validator must look into. The schema says their shape, these say their meaning.
    expressions: tuple[str, ...] = ()  # conditions: they must parse, and read only what is upstream on every path
    templates: tuple[str, ...] = ()  # objects whose texts may be "{{path}}", filled from the context
    texts: tuple[str, ...] = ()  # a person's words: they pass the detectors of the metadata boundary
    reason_codes: Mapping[str, str] = field(default_factory=dict)  # param: scope in which its code must exist
    # (params, context) -> payload of the request event. Must satisfy `request.schema`.
    payload: Callable[[Json, Json], Json] = lambda params, context: {}
    # (params, completion payload) -> Answer. Called only after the payload satisfied `completion.schema`.
    answer: Callable[[Json, Json], StepAnswer] | None = None
    # For kinds that Holdpoint answers itself: (params, context, decide) -> Answer; `decide` evaluates a condition.
    instant: Callable[[Json, Json, Callable[[str], bool]], StepAnswer] | None = None

    @property
    def is_terminal(self) -> bool:
        return not self.outcomes

    @property
    def is_final(self) -> bool:
        """It ends the workflow well; a definition needs one that can be reached."""
        return "TERMINAL" in self.must_target.values()

    @property
    def is_governed(self) -> bool:
        """A side effect: in mode `active` it opens an attempt and passes the hold point."""
        return self.effect != "none"

    @property
    def events(self) -> tuple[EventType, ...]:
        return tuple(event for event in (self.request, self.completion, self.failure) if event is not None)
