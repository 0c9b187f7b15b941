"""Checks the shape of requests and facts. Problems are pointers and rule names, never values or unknown keys."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

import jsonschema_rs

from governance.enforcement.rules.schemas import FACTS_SCHEMA, MALFORMED_SCHEMA, REQUEST_SCHEMA, WITHHELD_SCHEMA, Schema

Problem = dict[str, str]

MAX_PROBLEMS: Final = 20
_RULES: Final = {
    "additionalProperties": "unknown_field",
    "propertyNames": "unknown_field",
    "required": "required",
    "type": "type",
    "enum": "allowed_value",
    "const": "allowed_value",
    "pattern": "pattern",
    "maxLength": "max_length",
    "minItems": "min_items",
    "maxItems": "max_items",
    "minimum": "minimum",
    "maximum": "maximum",
}
_NOT_JSON: Final = [{"pointer": "", "rule": "not_json"}]


def _refuse_remote(uri: str) -> Any:
    raise ValueError("These schemas refer to nothing outside themselves.")


def validator(schema: Schema) -> jsonschema_rs.Draft202012Validator:
    """A validator that fetches nothing and quotes nothing."""
    # `mask`: error texts would otherwise quote submitted values. `RegexOptions`: the engine without backtracking, so
    # that no value can make a pattern run for seconds.
    return jsonschema_rs.Draft202012Validator(
        schema, retriever=_refuse_remote, mask="…", pattern_options=jsonschema_rs.RegexOptions()
    )


_REQUEST: Final = validator(REQUEST_SCHEMA)
_WITHHELD: Final = validator(WITHHELD_SCHEMA)
_MALFORMED: Final = validator(MALFORMED_SCHEMA)
_FACTS: Final = validator(FACTS_SCHEMA)


def request_problems(request: Any) -> list[Problem]:
    """Empty for a request that the evaluators can judge. A malformed request that was stored gives the problems that
    were stored with it."""
    if not isinstance(request, Mapping):
        return [{"pointer": "", "rule": "type"}]
    if "malformed" in request:
        found = _problems(_MALFORMED, dict(request))
        return found or _sorted(request["malformed"])
    if request.get("withheld"):
        return _problems(_WITHHELD, dict(request))
    # What is inside metadata is judged by the boundary, with its own limits. Here it only has to be an object.
    inner = request.get("metadata")
    return _problems(_REQUEST, {**request, "metadata": {}} if isinstance(inner, Mapping) else dict(request))


def facts_problems(facts: Any) -> list[Problem]:
    if not isinstance(facts, Mapping):
        return [{"pointer": "", "rule": "type"}]
    found = _problems(_FACTS, facts if type(facts) is dict else dict(facts))
    return found if found or parse_moment(facts["at"]) is not None else [{"pointer": "/at", "rule": "pattern"}]


def parse_moment(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def _problems(check: jsonschema_rs.Draft202012Validator, value: dict[str, Any]) -> list[Problem]:
    try:
        if check.is_valid(value):
            return []
        return _sorted([_problem(error) for error in check.iter_errors(value)])
    except (ValueError, TypeError, RecursionError, OverflowError):
        # Values that no JSON reader gives: NaN, broken Unicode, keys that are not text, endless nesting. Without this,
        # a caller inside the program could make `evaluate` raise.
        return list(_NOT_JSON)


def _problem(error: jsonschema_rs.ValidationError) -> Problem:
    """Pointer and rule of an error."""
    # The path has only names of our own schemas and positions in lists, because every object but metadata is closed.
    path = [*error.instance_path]
    if isinstance(error.kind, jsonschema_rs.ValidationErrorKind.Required):
        path.append(error.kind.property)
    return {
        "pointer": "".join(f"/{step}" for step in path),
        "rule": _RULES.get(error.kind.name, "shape"),
    }


def _sorted(problems: list[Problem]) -> list[Problem]:
    """Unique and sorted by pointer, so that the order of keys in a request cannot change a decision (law 3)."""
    pairs = sorted({(problem["pointer"], problem["rule"]) for problem in problems})
    return [{"pointer": pointer, "rule": rule} for pointer, rule in pairs[:MAX_PROBLEMS]]
