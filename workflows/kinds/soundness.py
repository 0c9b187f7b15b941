"""Checks that a step kind does not contradict itself. Runs at program start, so that no run meets the contradiction."""

import re

from governance.boundary.rules.schema import compile_schema
from workflows.kinds.base import EventType, Json, StepKind
from workflows.kinds.shapes import CODE_PATTERN, RESERVED_EVENTS

EFFECTS = ("none", "idempotent", "once")
_EVENT_NAME = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+")


def faults(kind: StepKind) -> list[str]:
    """Everything wrong with it, in words for its author."""
    found = [
        (re.fullmatch(CODE_PATTERN, kind.name) is None, "its name must be lower case, digits and underscores"),
        (kind.effect not in EFFECTS, f"effect must be one of {', '.join(EFFECTS)}"),
        (kind.default_timeout_seconds < 1, "default_timeout_seconds must be positive"),
        (bool(kind.failure_outcome) and kind.failure_outcome not in kind.outcomes, "failure_outcome is no outcome"),
        (not set(kind.must_target) <= set(kind.outcomes), "must_target names an outcome that is none"),
        (kind.is_terminal and kind.is_governed, "a step that ends the workflow has no effect of its own"),
        (_never_answers(kind), "nothing answers it: give `instant`, or `request`, `completion` and `answer`"),
        (bool(_named_params(kind) - _declared(kind)), "it gives a meaning to a param that its schema does not have"),
    ]
    schemas = [("params_schema", kind.params_schema), ("output_schema", kind.output_schema)]
    schemas += [(f"schema of {event.name}", event.schema) for event in kind.events]
    return [
        *(text for wrong, text in found if wrong),
        *(f"{name} is not a usable schema of a closed object" for name, schema in schemas if not _usable(schema)),
        *(fault for event in kind.events for fault in _event_faults(event)),
        *_direction_faults(kind),
    ]


def _never_answers(kind: StepKind) -> bool:
    if kind.is_terminal or kind.instant is not None or kind.block or kind.timer is not None or kind.bind is not None:
        return False
    if kind.waits or kind.performed or (kind.human_tier and kind.request is None):
        return kind.completion is None or kind.answer is None
    return kind.request is None or kind.completion is None or kind.answer is None


def _named_params(kind: StepKind) -> set[str]:
    tier = {kind.human_tier} if kind.human_tier else set()
    return tier | {*kind.expressions, *kind.templates, *kind.texts, *kind.reason_codes}


def _declared(kind: StepKind) -> set[str]:
    return set(kind.params_schema.get("properties", {}))


def _usable(schema: Json) -> bool:
    try:
        compile_schema(schema)
    except ValueError:
        return False
    return schema.get("type") == "object" and schema.get("additionalProperties") is False


def _event_faults(event: EventType) -> list[str]:
    problems = [] if _EVENT_NAME.fullmatch(event.name) else [f"{event.name} is no name for an event"]
    if event.name in RESERVED_EVENTS:
        problems.append(f"{event.name} is Holdpoint's own")
    if not set(event.dropped) <= set(event.schema.get("properties", {})):
        problems.append(f"{event.name} drops what its schema does not have")
    if set(event.dropped) & set(event.schema.get("required", ())):
        problems.append(f"{event.name} requires what it drops")
    return problems


def _direction_faults(kind: StepKind) -> list[str]:
    wanted = ((kind.request, "out"), (kind.completion, "in"), (kind.failure, "in"))
    return [f"{event.name} must be of direction {way}" for event, way in wanted if event and event.direction != way]
