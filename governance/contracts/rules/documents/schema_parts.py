"""Builders for the areas' JSON Schemas. With them, closed objects, bounds and descriptions cannot be forgotten."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Schema = dict[str, Any]

DIALECT = "https://json-schema.org/draft/2020-12/schema"
SLUG_PATTERN = r"^[a-z][a-z0-9]*([-_][a-z0-9]+)*$"


def document(*, title: str, fields: dict[str, Schema], optional: dict[str, Schema] | None = None) -> Schema:
    """The root of a policy document: every field is required unless it is `optional`, nothing else is allowed."""
    root = closed_object(description=title, fields=fields, optional=optional)
    return {"$schema": DIALECT, "title": title, **root}


def closed_object(*, description: str, fields: dict[str, Schema], optional: dict[str, Schema] | None = None) -> Schema:
    return {
        "type": "object",
        "description": description,
        "additionalProperties": False,
        "required": list(fields),
        "properties": fields | (optional or {}),
    }


def choice(*, description: str, options: Sequence[str]) -> Schema:
    return {"type": "string", "description": description, "enum": list(options)}


def fixed(*, description: str, value: Any) -> Schema:
    """A field with one possible value. It is written out, so that its owner approves it."""
    return {"description": description, "const": value}


def flag(*, description: str) -> Schema:
    return {"type": "boolean", "description": description}


def integer(*, description: str, minimum: int, maximum: int, nullable: bool = False) -> Schema:
    kind: str | list[str] = ["integer", "null"] if nullable else "integer"
    return {"type": kind, "description": description, "minimum": minimum, "maximum": maximum}


def text(*, description: str, pattern: str, max_length: int, nullable: bool = False) -> Schema:
    kind: str | list[str] = ["string", "null"] if nullable else "string"
    return {
        "type": kind,
        "description": description,
        "pattern": pattern,
        "minLength": 1,
        "maxLength": max_length,
    }


def array(*, description: str, items: Schema, min_items: int, max_items: int, unique: bool = True) -> Schema:
    return {
        "type": "array",
        "description": description,
        "items": items,
        "minItems": min_items,
        "maxItems": max_items,
        "uniqueItems": unique,
    }
