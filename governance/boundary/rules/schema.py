"""The contract's metadata schema (JSON Schema 2020-12): compiling it, and its errors as paths and rules."""

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import jsonschema_rs

_RULES = {
    "additionalProperties": "not_in_schema",
    "unevaluatedProperties": "not_in_schema",
    "propertyNames": "not_in_schema",
    "falseSchema": "not_in_schema",
    "type": "schema_type",
    "required": "schema_required",
    "enum": "schema_value",
    "const": "schema_value",
    "format": "schema_format",
    "pattern": "schema_format",
}
_LIMITS = """maxLength minLength maximum minimum exclusiveMaximum exclusiveMinimum multipleOf maxItems
minItems maxProperties minProperties uniqueItems"""
_RULES.update(dict.fromkeys(_LIMITS.split(), "schema_limit"))

Path = tuple[str | int, ...]


def _refuse_remote(uri: str) -> Any:
    raise ValueError("references outside the schema are refused")


def compile_schema(schema: Mapping[str, Any]) -> jsonschema_rs.Draft202012Validator:
    """Raises ValueError (jsonschema_rs.ValidationError is one) if the schema cannot be used."""
    return jsonschema_rs.Draft202012Validator(
        dict(schema),
        # Nothing is fetched: a schema of a contract must not make the server call an address.
        retriever=_refuse_remote,
        validate_formats=True,
        # Error texts would otherwise quote submitted values.
        mask="…",
        # The engine without backtracking: a pattern in a contract cannot stall intake.
        pattern_options=jsonschema_rs.RegexOptions(),
    )


@lru_cache(maxsize=256)
def compiled(text: str) -> jsonschema_rs.Draft202012Validator:
    """The validator of a schema given as text. Cached: a contract version keeps its schema, so there are few."""
    return compile_schema(json.loads(text))


def property_names(schema: Any) -> Iterator[str]:
    """Names that the contract itself publishes. They may be repeated to the caller."""
    waiting = [schema]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Mapping):
            properties = part.get("properties")
            if isinstance(properties, Mapping):
                yield from properties
            waiting.extend(part.values())
        elif isinstance(part, list | tuple):
            waiting.extend(part)


def schema_errors(validator: jsonschema_rs.Draft202012Validator, instance: Any) -> Iterator[tuple[Path, str]]:
    """Path and rule of every error. A path ends with the key that is not listed or is missing."""
    # `is_valid` is much faster than collecting errors, and nearly every request is valid.
    if validator.is_valid(instance):
        return
    for error in validator.iter_errors(instance):
        path = tuple(error.instance_path)
        rule = _RULES.get(error.kind.name, "schema_mismatch")
        for tail in _tails(error.kind):
            yield path + tail, rule


def _tails(kind: Any) -> list[Path]:
    if isinstance(
        kind,
        jsonschema_rs.ValidationErrorKind.AdditionalProperties
        | jsonschema_rs.ValidationErrorKind.UnevaluatedProperties,
    ):
        return [(name,) for name in kind.unexpected]
    if isinstance(kind, jsonschema_rs.ValidationErrorKind.Required):
        return [(kind.property,)]
    return [()]
