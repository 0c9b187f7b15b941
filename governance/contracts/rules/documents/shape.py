"""Checks one document against its area's JSON Schema. Messages do not quote the document."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import jsonschema_rs

from governance.contracts.rules.documents.area import DocumentProblem
from governance.contracts.rules.documents.catalog import area
from governance.contracts.rules.documents.json_safety import pointer_to

# Keyword → (our rule name, message). `{limit}` is the keyword's value in our own schema, so it may be shown.
_WORDING = {
    "type": ("type", "must be {limit}"),
    "enum": ("allowed_value", "must be one of: {limit}"),
    "const": ("fixed_value", "must be exactly the value of the default document; it cannot be changed"),
    "minimum": ("minimum", "must be at least {limit}"),
    "maximum": ("maximum", "must be at most {limit}"),
    "minLength": ("min_length", "must have at least {limit} character(s)"),
    "maxLength": ("max_length", "must have at most {limit} characters"),
    "pattern": ("pattern", "must match the pattern {limit}"),
    "minItems": ("min_items", "must have at least {limit} entries"),
    "maxItems": ("max_items", "must have at most {limit} entries"),
    "uniqueItems": ("unique_items", "must not list the same entry twice"),
}


def _refuse_remote(uri: str) -> Any:
    raise ValueError("Schemas of policy documents refer to nothing outside themselves.")


@cache
def _validator(area_name: str) -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator(area(area_name).schema, retriever=_refuse_remote)


def shape_problems(area_name: str, document: Any) -> Iterator[DocumentProblem]:
    """All problems of the document against its schema."""
    schema = area(area_name).schema
    for error in _validator(area_name).iter_errors(document):
        yield from _problems_of(error, schema=schema)


def _problems_of(error: jsonschema_rs.ValidationError, *, schema: dict[str, Any]) -> Iterator[DocumentProblem]:
    path = tuple(error.instance_path)
    kind = error.kind
    if isinstance(kind, jsonschema_rs.ValidationErrorKind.Required):
        yield DocumentProblem(pointer_to(*path, kind.property), "required", "is missing")
    elif isinstance(kind, jsonschema_rs.ValidationErrorKind.AdditionalProperties):
        for key in kind.unexpected:
            yield DocumentProblem(pointer_to(*path, key), "unknown_field", "is not a field of this document")
    else:
        keyword = str(error.schema_path[-1])
        rule, wording = _WORDING.get(keyword, (keyword, "breaks the schema of this document"))
        limit = _in_words(_look_up(schema, error.schema_path))
        yield DocumentProblem(pointer_to(*path), rule, wording.format(limit=limit))


def _look_up(schema: Any, path: list[str | int]) -> Any:
    for part in path:
        schema = schema[part]
    return schema


def _in_words(limit: Any) -> str:
    return " or ".join(map(str, limit)) if isinstance(limit, list) else str(limit)
