"""The names of the events of calls to registered modules, and their schemas: `module.<slug>.<operation>.<word>`.

They follow from the name alone, so that no registry is asked: what an operation sends and returns is checked by the
step that asked for it.
"""

import re
from dataclasses import dataclass
from functools import lru_cache

from workflows.kinds.base import EventType, Json
from workflows.kinds.shapes import BOOLEAN, CODE, MAX_ITEMS, closed

SLUG_PATTERN = r"[a-z0-9]([a-z0-9-]{0,28}[a-z0-9])?"
OPERATION_PATTERN = r"[a-z][a-z0-9_]{0,31}"
REQUESTED, COMPLETED, FAILED = "requested", "completed", "failed"
ANSWERS = (COMPLETED, FAILED)
CALL_NAME = re.compile(rf"module\.({SLUG_PATTERN})\.({OPERATION_PATTERN})\.({REQUESTED}|{COMPLETED}|{FAILED})")
LONGEST_TEXT = 512


def _value(depth: int) -> Json:
    """Any JSON of short texts, this deep."""
    schema: Json = {"type": ["string", "number", "boolean", "null"], "maxLength": LONGEST_TEXT}
    if depth:
        schema["type"] += ["array", "object"]
        schema |= {"items": _value(depth - 1), "maxItems": MAX_ITEMS}
        schema |= {"propertyNames": {"maxLength": 64}, "maxProperties": 100}
        schema["additionalProperties"] = _value(depth - 1)
    return schema


VALUES: Json = _value(4) | {"type": "object"}
_SCHEMAS: dict[str, Json] = {
    REQUESTED: closed(
        {
            "module": {"type": "string", "pattern": f"^{SLUG_PATTERN}$"},
            "operation": {"type": "string", "pattern": f"^{OPERATION_PATTERN}$"},
            "send": VALUES,
        }
    ),
    COMPLETED: closed({"result": VALUES}),
    FAILED: closed({"reason_code": CODE, "retryable": BOOLEAN}),
}
_WORDS = {
    REQUESTED: "Asks a registered module for an operation.",
    COMPLETED: "What the operation returned. The step's own schema decides whether it fits.",
    FAILED: "The operation failed. A retry needs `retryable`, and an effect that proves it safe.",
}


@dataclass(frozen=True, slots=True)
class NamedCall:
    module: str
    operation: str
    word: str


def named_call(name: str) -> NamedCall | None:
    """None: no event of a call."""
    found = CALL_NAME.fullmatch(name)
    return NamedCall(found[1], found[3], found[4]) if found else None


def call_event_name(module: str, operation: str, word: str) -> str:
    return f"module.{module}.{operation}.{word}"


@lru_cache(maxsize=4096)
def call_event(name: str) -> EventType | None:
    """The event type of this name. The same object for the same name, so that its schema is compiled once."""
    call = named_call(name)
    if call is None:
        return None
    direction = "out" if call.word == REQUESTED else "in"
    return EventType(name=name, direction=direction, description=_WORDS[call.word], schema=_SCHEMAS[call.word])
