"""What a step kind is, for engine, validator, API and modules; and whether a value fits one of its schemas.

Pure: no database, no clock. A kind is one module with a `KIND`. The engine and the validator decide by its fields and
not by its name. Outside this package kinds are named in `static/workflows/graph.css` (colours; the others get the plain
one), in `workflows/webhooks/selectors.py` (which event names `emit_webhook` steps use), in the starters, and, by
their event types, in the webhook rules and the simulator's answers.

The context that `payload` and `instant` get has one object per completed step, by step id, and beside them the strings
and lists of `ROOT`, which belong to no step.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

import jsonschema_rs

from governance.boundary.rules.pointers import boundary_pointer
from governance.boundary.rules.schema import compile_schema, property_names

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


class Evaluator(Protocol):
    """What a kind may ask while its step starts. Raises if it cannot be evaluated; the step then fails."""

    def __call__(self, expression: str) -> bool:
        """A condition."""

    def value(self, expression: str) -> Any:
        """The value of an expression of format 2."""

    def moment(self, expression: str) -> datetime:
        """The same, as the moment that its text says."""

    def fill(self, template: Any) -> Any:
        """A template with its values, by the rules of the document's format."""


FORMATS = (1, 2)
# What `StepKind.block` says: the engine starts the steps inside, and ends the block when they have.
PARALLEL, FOR_EACH, LOOP = "parallel", "for_each", "loop"


@dataclass(frozen=True, slots=True, kw_only=True)
class StepKind:
    name: str
    title: str
    description: str
    params_schema: Json
    outcomes: tuple[str, ...]  # empty: the step ends the workflow (halt)
    output_schema: Json
    effect: str  # "none", "idempotent" or "once"; `once` is what nothing declared means
    pack: str = ""  # the trade that it is for, such as "clinical"; empty: any
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
    # (params, completion payload) -> StepAnswer. Called only after the payload satisfied `completion.schema`.
    answer: Callable[[Json, Json], StepAnswer] | None = None
    # For kinds that Holdpoint answers itself: (params, context, evaluator) -> StepAnswer. Called as a function the
    # evaluator decides a condition, which is all that a kind of format 1 needs.
    instant: Callable[[Json, Json, Evaluator], StepAnswer] | None = None
    formats: tuple[int, ...] = FORMATS  # of documents in which it may be used
    # params -> the kind as it is in a step with these params: its own outcomes, output, effect, events or timeout.
    # Raises ValueError, KeyError or TypeError if the params do not fit. Asked through `bound_kind` only.
    bind: "Callable[[Json], StepKind] | None" = None
    block: str = ""  # PARALLEL, FOR_EACH or LOOP: it holds other steps
    timeout_outcome: str = ""  # taken when its time is over; empty: its branch fails, or the workflow halts
    waits: bool = False  # sends nothing; an event that the shell finds for it completes it
    performed: bool = False  # Holdpoint does it after the advance is written, and reports its completion
    # (params, context, evaluator) -> what the request carries, what people are shown, or what is performed. Instead of
    # `payload`, for kinds whose params are templates of format 2.
    prepare: Callable[[Json, Json, Evaluator], Json] | None = None
    # (params, context, evaluator, now) -> until when the step waits; and what it gives then.
    timer: Callable[[Json, Json, Evaluator, datetime], datetime] | None = None
    answered: Callable[[datetime], StepAnswer] | None = None
    operation: str = ""  # what the hold point is asked for; empty: the name of the request event
    target: str = ""  # whom it concerns; empty: the case
    call: Json | None = None  # how its request goes out over http; None: over the streams

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


# By kind and params. Bounded: params are part of definitions, and a process serves many organizations.
_BOUND: dict[tuple[str, str], tuple[StepKind, StepKind]] = {}
MOST_BOUND = 2000


def bound_kind(kind: StepKind, params: Any) -> StepKind:
    """The kind as it is in a step with these params; the kind itself if it has nothing to bind, or they do not fit."""
    if kind.bind is None:
        return kind
    try:
        key = (kind.name, json.dumps(params, sort_keys=True))
    except (TypeError, ValueError, RecursionError):
        return kind
    known = _BOUND.get(key)
    if known is not None and known[0] is kind:
        return known[1]
    try:
        found = kind.bind(params)
    except (TypeError, ValueError, KeyError, AttributeError):
        return kind
    if len(_BOUND) >= MOST_BOUND:
        _BOUND.clear()
    _BOUND[key] = (kind, found)
    return found


MAX_PROBLEMS = 50
_NOT_JSON = "must be plain JSON: finite numbers, valid text, text keys, no endless nesting"
_KINDS = jsonschema_rs.ValidationErrorKind


@dataclass(frozen=True, slots=True, order=True)
class ShapeProblem:
    pointer: str
    message: str
    rule: str


class Checker:
    """One compiled schema."""

    __slots__ = ("_known", "_schema", "_validator")

    def __init__(self, schema: Json) -> None:
        self._schema = schema
        self._validator = compile_schema(schema)
        self._known = frozenset(property_names(schema))

    def problems(self, value: Any, *, base: str = "", known: frozenset[str] = frozenset()) -> list[ShapeProblem]:
        """Sorted, so that the order of keys changes nothing; `known` are more names that a pointer may show.
        Never raises, whatever the value is."""
        try:
            if self._validator.is_valid(value):
                return []
            shown = self._known | known
            errors = self._validator.iter_errors(value)
            found = {one for error in errors for one in self._of(error, value, base, shown)}
        except (ValueError, TypeError, RecursionError, OverflowError):
            return [ShapeProblem(base, _NOT_JSON, "json")]
        return sorted(found)[:MAX_PROBLEMS]

    def _of(
        self, error: jsonschema_rs.ValidationError, value: Any, base: str, shown: frozenset[str]
    ) -> Iterator[ShapeProblem]:
        path = tuple(error.instance_path)
        rule, message = _words(error, self._schema)
        for tail in _tails(error.kind):
            pointer = boundary_pointer((*path, *tail), root=value, base=base, known=shown)
            yield ShapeProblem(pointer, message, rule)


_CHECKERS: dict[int, tuple[Json, Checker]] = {}


MOST_CHECKERS = 10_000


def checker(schema: Json) -> Checker:
    """Compiled once per schema object. Schemas of kinds and events live as long as the process; those of bound kinds
    come and go with their definitions, so their number is bounded."""
    cached = _CHECKERS.get(id(schema))
    if cached is None or cached[0] is not schema:
        if len(_CHECKERS) >= MOST_CHECKERS:
            _CHECKERS.clear()
        cached = _CHECKERS[id(schema)] = (schema, Checker(schema))
    return cached[1]


def params_problems(kind: StepKind, params: Any, *, base: str = "") -> list[ShapeProblem]:
    return checker(kind.params_schema).problems(params, base=base)


def output_problems(kind: StepKind, output: Any, *, base: str = "") -> list[ShapeProblem]:
    """Empty: the output may be merged into the context. Else the module's contract drifted."""
    return checker(kind.output_schema).problems(output, base=base)


def _tails(kind: Any) -> list[tuple[str, ...]]:
    if isinstance(kind, _KINDS.AdditionalProperties):
        return [(name,) for name in kind.unexpected]
    if isinstance(kind, _KINDS.Required):
        return [(kind.property,)]
    return [()]


# Keyword of JSON Schema: the rule's name, and what to do. `{}` is the schema's own limit, never a submitted value.
_WORDS = {
    "additionalProperties": ("unknown_field", "is not known here"),
    "propertyNames": ("field_name", "has a field whose name is too long, or not lower case, digits and underscores"),
    "required": ("required", "is required; add it"),
    "type": ("type", "must be of type {}"),
    "enum": ("allowed_value", "must be one of: {}"),
    "const": ("allowed_value", "must be exactly {}"),
    "pattern": ("format", "must match {}"),
    "format": ("format", "must be a {}"),
    "not": ("reserved", "is reserved; choose another"),
    "uniqueItems": ("limit", "must not hold the same twice"),
    "maxLength": ("limit", "must have at most {} characters"),
    "minLength": ("limit", "must have at least {} characters"),
    "maximum": ("limit", "must be at most {}"),
    "minimum": ("limit", "must be at least {}"),
    "maxItems": ("limit", "must have at most {} items"),
    "minItems": ("limit", "must have at least {} items"),
    "maxProperties": ("limit", "must have at most {} fields"),
    "minProperties": ("limit", "must have at least {} fields"),
}


def _words(error: jsonschema_rs.ValidationError, schema: Json) -> tuple[str, str]:
    rule, text = _WORDS.get(error.kind.name, ("shape", "does not have the expected shape"))
    *way, keyword = error.schema_path
    part: Any = schema
    for step in way:
        part = part[step]
    if rule == "format" and "description" in part:
        return rule, f"must be {part['description']}"
    limit = part[keyword]
    return rule, text.format(" or ".join(map(str, limit)) if isinstance(limit, list) else limit)
