"""What a module declares: operations and event types, completed with their defaults, and everything wrong with them."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from governance.boundary.rules.limits import broken_limit
from governance.boundary.rules.schema import compile_schema
from workflows.kinds.base import Json, StepKind
from workflows.kinds.call_events import ANSWERS, OPERATION_PATTERN, SLUG_PATTERN, named_call
from workflows.kinds.shapes import RESERVED_EVENTS, RESERVED_PREFIXES
from workflows.modules.states import BODILESS, METHODS

EFFECTS = ("none", "idempotent", "once")
MOST_OPERATIONS, MOST_EVENTS = 50, 50
SCHEMA_BYTES, SCHEMA_DEPTH = 8 * 1024, 8
STARTS = ("case.created", "run.requested")
"""Events that begin a run: any module may declare them."""
Problem = tuple[str, str]
_EVENT = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_-]*)+")
_PATH = re.compile(r"(/[A-Za-z0-9._~-]+)*/?")
_KEYWORDS = frozenset(
    {
        *("type", "properties", "required", "additionalProperties", "items", "enum", "const", "pattern", "format"),
        *("minLength", "maxLength", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
        *("minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties", "title", "description", "default"),
    }
)


def operations_complete(operations: Mapping[str, Any]) -> Json:
    """With every default written out. Only for what has no problems."""
    return {name: _complete(dict(one)) for name, one in sorted(operations.items())}


def _complete(one: Json) -> Json:
    return {
        "effect": one.get("effect", "once"),
        "send": closed_schema(one.get("send", {"type": "object"})),
        "returns": closed_schema(one.get("returns", {"type": "object"})),
        "method": one.get("method", "POST"),
        "path": one.get("path", ""),
    }


def closed_schema(schema: Any) -> Any:
    """Fields that a schema does not list are refused: what it leaves open is closed here, in words that everybody
    reads."""
    if not isinstance(schema, dict):
        return schema
    closed = dict(schema)
    if "properties" in closed or closed.get("type") == "object":
        closed["properties"] = {name: closed_schema(part) for name, part in closed.get("properties", {}).items()}
        closed.setdefault("additionalProperties", False)
    if "items" in closed:
        closed["items"] = closed_schema(closed["items"])
    return closed


def terms_problems(*, slug: str, operations: Any, publishes: Any, kinds: Mapping[str, StepKind]) -> list[Problem]:
    """Pointer and words of everything that is wrong. Names what is expected, never what was given."""
    found = [] if re.fullmatch(SLUG_PATTERN, slug) else [("/slug", "is up to 30 lower-case letters, digits and dashes")]
    found += _operations_problems(operations)
    found += _publishes_problems(slug, publishes, kinds)
    if not found and not operations and not publishes:
        found.append(("/operations", "a module offers an operation or publishes an event type"))
    return found


def _operations_problems(operations: Any) -> list[Problem]:
    if not isinstance(operations, dict) or len(operations) > MOST_OPERATIONS:
        return [("/operations", f"is an object of at most {MOST_OPERATIONS} operations by name")]
    found: list[Problem] = []
    for name, one in operations.items():
        if not isinstance(name, str) or not re.fullmatch(OPERATION_PATTERN, name):
            found.append(("/operations", "a name is up to 32 lower-case letters, digits and underscores"))
        else:
            found += _operation_problems(f"/operations/{name}", one)
    return list(dict.fromkeys(found))


def _operation_problems(at: str, one: Any) -> Iterator[Problem]:
    known = ("effect", "send", "returns", "method", "path")
    if not isinstance(one, dict) or set(one) - set(known):
        yield at, "is an object of " + ", ".join(known)
        return
    effect, method, path = one.get("effect", "once"), one.get("method", "POST"), one.get("path", "")
    if effect not in EFFECTS:
        yield f"{at}/effect", "one of: " + ", ".join(EFFECTS)
    if method not in METHODS:
        yield f"{at}/method", "one of: " + ", ".join(METHODS)
    elif method == "GET" and effect == "once":
        yield f"{at}/method", "GET reads; give it the effect none or idempotent, or another method"
    if not isinstance(path, str) or len(path) > 200 or not _PATH.fullmatch(path):
        yield f"{at}/path", "is a path such as /refunds, of plain segments without query"
    for name in ("send", "returns"):
        if name in one:
            yield from schema_problems(one[name], at=f"{at}/{name}")
    if method in BODILESS and not _is_flat(one.get("send", {})):
        yield f"{at}/send", f"{method} has no body: its fields are texts, numbers or booleans, which stand in the query"


def _is_flat(schema: Any) -> bool:
    properties = schema.get("properties", {}) if isinstance(schema, dict) else {}
    parts = properties.values() if isinstance(properties, dict) else ()
    return all(isinstance(part, dict) and part.get("type") not in {"object", "array"} for part in parts)


def schema_problems(schema: Any, *, at: str) -> list[Problem]:
    """A schema that can be judged without running it: plain keywords, no references, closed, small."""
    if not isinstance(schema, dict) or schema.get("type") != "object":
        return [(at, "is a JSON Schema of an object")]
    if broken_limit(schema, max_bytes=SCHEMA_BYTES, max_depth=SCHEMA_DEPTH * 2) is not None:
        return [(at, f"has at most {SCHEMA_BYTES} bytes as JSON")]
    found = list(dict.fromkeys(_keyword_problems(schema, at, SCHEMA_DEPTH)))
    if found:
        return found
    try:
        compile_schema(closed_schema(schema))
    except ValueError:
        return [(at, "is no valid JSON Schema 2020-12")]
    return []


def _keyword_problems(schema: Any, at: str, depth: int) -> Iterator[Problem]:
    if not isinstance(schema, dict) or not depth:
        yield at, "is an object with keywords of JSON Schema, and not deeper than that"
        return
    if set(schema) - _KEYWORDS:
        yield at, "uses only these keywords: " + ", ".join(sorted(_KEYWORDS))
    if schema.get("additionalProperties", False) is not False:
        yield at, "is closed: additionalProperties is false"
    properties = schema.get("properties", {})
    if not isinstance(properties, dict):
        yield f"{at}/properties", "is an object of schemas by name"
        return
    for name, part in properties.items():
        # Only plain names are repeated: a key may be the very text that has to be refused.
        shown = name if isinstance(name, str) and re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,63}", name) else ""
        if not shown:
            yield f"{at}/properties", "has a field whose name is not letters, digits and underscores"
        else:
            yield from _keyword_problems(part, f"{at}/properties/{shown}", depth - 1)
    if "items" in schema:
        yield from _keyword_problems(schema["items"], f"{at}/items", depth - 1)


def _publishes_problems(slug: str, publishes: Any, kinds: Mapping[str, StepKind]) -> list[Problem]:
    if not isinstance(publishes, list) or len(publishes) > MOST_EVENTS:
        return [("/publishes", f"is a list of at most {MOST_EVENTS} event types")]
    found = [(f"/publishes/{number}", _event_problem(slug, name, kinds)) for number, name in enumerate(publishes)]
    return [(pointer, words) for pointer, words in found if words]


def _event_problem(slug: str, name: Any, kinds: Mapping[str, StepKind]) -> str:
    if not isinstance(name, str) or len(name) > 80 or not (_EVENT.fullmatch(name) or named_call(name)):
        return "is the name of an event type, such as shipment.arrived"
    call = named_call(name)
    if call is not None:
        return "" if call.module == slug and call.word in ANSWERS else "is another module's, or Holdpoint's own"
    if name in STARTS:
        return ""
    if name in RESERVED_EVENTS or name.startswith((*RESERVED_PREFIXES, "workflow.", "module.")):
        return _kind_problem(slug, name, kinds) or "is Holdpoint's own"
    return _kind_problem(slug, name, kinds) or ""


def _kind_problem(slug: str, name: str, kinds: Mapping[str, StepKind]) -> str | None:
    """None: no step kind knows the event. Else why this module may not publish it; empty if it may."""
    for kind in kinds.values():
        if name in {event.name for event in (kind.completion, kind.failure) if event}:
            return "" if kind.module == slug else f"answers steps that are sent to {kind.module}"
        if kind.request is not None and kind.request.name == name:
            return "is a request: Holdpoint sends it"
    return None
