"""The small schemas that the kinds are made of: references, codes and numbers, every one of them bounded (law 6)."""

from typing import Any

from workflows.kinds.base import ROOT_SHOWN, Json

CODE_PATTERN = "^[a-z][a-z0-9_]{0,63}$"
MAX_ITEMS = 200
MAX_TEXT = 1_024  # what expressions can compare, and what an author's schema may allow

# A description with a pattern or format is what people read when it does not match: "must be …".
CODE: Json = {
    "type": "string",
    "pattern": CODE_PATTERN,
    "description": "a code: up to 64 lower-case letters, digits and underscores, a letter first",
}
# Names of other systems' values, such as DERMOSCOPIC or in-review: one word, never prose.
TERM: Json = {
    "type": "string",
    "pattern": "^[A-Za-z][A-Za-z0-9_.-]{0,63}$",
    "description": "one word of up to 64 letters, digits, dots, hyphens and underscores, a letter first",
}
UUID_SCHEMA: Json = {"type": "string", "format": "uuid", "maxLength": 36, "description": "a UUID"}
REFERENCE: Json = {
    "type": "string",
    "pattern": "^[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}$",
    "description": "a reference: up to 128 letters, digits and . _ : / -, no spaces",
}
MOMENT: Json = {
    "type": "string",
    "pattern": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?(Z|[+-][0-9]{2}:[0-9]{2})$",
    "format": "date-time",
    "description": "an RFC 3339 timestamp with seconds and a time zone",
}
SHARE: Json = {"type": "number", "minimum": 0, "maximum": 1}
COUNT: Json = {"type": "integer", "minimum": 0, "maximum": 10_000}
BOOLEAN: Json = {"type": "boolean"}
# Emitted by Holdpoint itself, or what starts a workflow: no kind and no webhook may use these names for its own.
RESERVED_EVENTS = (
    "case.created",
    "run.requested",
    "workflow.started",
    "workflow.halted",
    "workflow.completed",
    "workflow.cancelled",
    "workflow.intervened",
    "workflow.overdue",
)
# What webhook endpoints are told of the record; a step's own event must not look like it.
RESERVED_PREFIXES = (
    "attempt.",
    "review.",
    "quarantine.",
    "contract.",
    "shutdown.",
    "webhook.",
    "webhook_endpoint.",
)
DIALECT = "https://json-schema.org/draft/2020-12/schema"


def closed(properties: Json, *, optional: tuple[str, ...] = ()) -> Json:
    """An object with exactly these members."""
    required = [name for name in properties if name not in optional]
    return {"type": "object", "additionalProperties": False, "required": required, "properties": properties}


def array_shape(items: Json, *, at_least: int = 0, at_most: int = MAX_ITEMS, unique: bool = False) -> Json:
    limits: Json = {"minItems": at_least, "maxItems": at_most}
    return {"type": "array", "items": items, **limits, **({"uniqueItems": True} if unique else {})}


# What every module says that could not do its work.
FAILURE = closed({"reason_code": CODE, "retryable": BOOLEAN})
_DIAGNOSIS: Json = {
    "code": {"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._:/-]{0,63}$"},
    "probability": SHARE,
    "confidence": SHARE,
    "rank": {"type": "integer", "minimum": 1, "maximum": 1000},
}
_OPTIONAL = ("probability", "confidence", "rank")
DIAGNOSES = array_shape(closed(_DIAGNOSIS, optional=_OPTIONAL))
# `source` is the step that said so. Which one counts is for the receiver: Holdpoint makes no clinical decision.
SOURCED_DIAGNOSES = array_shape(closed({"source": CODE, **_DIAGNOSIS}, optional=_OPTIONAL), at_most=MAX_ITEMS * 10)


def _bounded(depth: int) -> Json:
    """Any JSON of short strings, this deep. Keywords for arrays and objects are without meaning for the rest."""
    schema: Json = {"type": ["string", "number", "boolean", "null"], "maxLength": MAX_TEXT}
    if depth:
        schema["type"] += ["array", "object"]
        schema |= {"items": _bounded(depth - 1), "maxItems": MAX_ITEMS * 10}
        schema |= {"propertyNames": {"maxLength": 64}, "maxProperties": 200}
        schema["additionalProperties"] = _bounded(depth - 1)
    return schema


def bounded_value() -> Json:
    """A value of any type, of short texts."""
    return _bounded(3)


# When a block's join is reached, and what then happens to the branches that still go on.
JOIN: Json = {
    "anyOf": [
        {"enum": ["all", "any"]},
        closed({"at_least": {"type": "integer", "minimum": 1, "maximum": MAX_ITEMS}}),
    ],
    "description": 'all, any, or {"at_least": a number}',
}
OTHERS: Json = {"enum": ["cancel", "finish"]}


# Outputs of steps, by step id, beside the three ids. Each was accepted by its kind's schema when it was merged.
CONTEXT: Json = {"type": "object", "maxProperties": 210, "propertyNames": CODE, "additionalProperties": _bounded(4)}
# What a webhook carries: an object of scalars, or objects and lists of them.
METADATA: Json = {"type": "object", "maxProperties": 50, "propertyNames": CODE, "additionalProperties": _bounded(4)}


def outputs(context: Json) -> Json:
    """The outputs of the steps so far, by step id; in a fixed order, because stored JSON has none."""
    return {key: context[key] for key in sorted(context) if isinstance(context[key], dict)}


def snapshot(context: Json) -> Json:
    """The context as a module sees it (S4 3.6)."""
    return {key: context[key] for key in ROOT_SHOWN if key in context} | outputs(context)


def image_ids(context: Json) -> list[str]:
    """What the image checks found; without any, what the case was created with."""
    found: set[str] = set()
    for output in outputs(context).values():
        found.update(_texts(output.get("image_ids")))
    return sorted(found or set(_texts(context.get("image_ids"))))[:MAX_ITEMS]


def diagnoses(context: Json) -> list[Json]:
    """Every diagnosis that a step gave, with the step it comes from."""
    return [
        {"source": step, **diagnosis}
        for step, output in outputs(context).items()
        for diagnosis in output.get("diagnoses") or ()
    ]


def _texts(value: Any) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
