"""Checks a contract's `metadata_boundary` document: limits in range, no essential detector switched off, and a schema
that is an allow-list with bounded values."""

import json
from collections.abc import Mapping
from typing import Any, Final

from governance.boundary.rules.allowlist import allow_list_problems
from governance.boundary.rules.detectors import ALWAYS_ON, DETECTOR_NAMES
from governance.boundary.rules.fact_declarations import declaration_problems
from governance.boundary.rules.schema import compiled

# The safe choice: no metadata at all, until the privacy owner approves a list of fields.
DEFAULT_DOCUMENT: Final[dict[str, Any]] = {
    "schema": {"type": "object", "properties": {}, "additionalProperties": False},
    "max_bytes": 4096,
    "max_depth": 4,
    "forbidden_keys": [],
    "detectors": {"disabled": []},
}
MAX_BYTES_LIMIT: Final = 65_536
MAX_DEPTH_LIMIT: Final = 7  # a request is at most eight deep, and metadata is its second level


def validate_boundary_document(document: Any) -> list[str]:
    """Problems as text; empty if the document can be used. Never raises."""
    if not isinstance(document, Mapping):
        return ["the document must be an object"]
    problems = [f"unknown field {name!r}" for name in document if name not in (*DEFAULT_DOCUMENT, "facts")]
    problems += _integer(document, "max_bytes", low=2, high=MAX_BYTES_LIMIT)
    problems += _integer(document, "max_depth", low=1, high=MAX_DEPTH_LIMIT)
    problems += _keys(document.get("forbidden_keys", []))
    problems += [f"{'/'.join(map(str, path))}: {words}" for path, _, words in declaration_problems(document)]
    detectors = _detectors(document.get("detectors", {}))
    keys_checked = bool(detectors) or "forbidden_key" not in document.get("detectors", {}).get("disabled", [])
    schema = document.get("schema", DEFAULT_DOCUMENT["schema"])
    return problems + detectors + _schema(schema, keys_checked=keys_checked)


def _integer(document: Mapping[str, Any], name: str, *, low: int, high: int) -> list[str]:
    value = document.get(name, low)
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        return [f"{name} must be an integer from {low} to {high}"]
    return []


def _keys(value: Any) -> list[str]:
    if not isinstance(value, list | tuple) or not all(isinstance(key, str) and key.strip() for key in value):
        return ["forbidden_keys must be a list of non-empty strings"]
    return []


def _detectors(value: Any) -> list[str]:
    if not isinstance(value, Mapping) or set(value) - {"disabled"}:
        return ["detectors must be an object with only `disabled`"]
    disabled = value.get("disabled", [])
    if not isinstance(disabled, list | tuple) or not all(isinstance(name, str) for name in disabled):
        return ["detectors.disabled must be a list of detector names"]
    unknown = [f"unknown detector {name!r}" for name in disabled if name not in DETECTOR_NAMES]
    return unknown + [f"detector {name!r} cannot be disabled" for name in disabled if name in ALWAYS_ON]


def _schema(schema: Any, *, keys_checked: bool) -> list[str]:
    if not isinstance(schema, Mapping):
        return ["schema must be a JSON Schema object"]
    try:
        compiled(json.dumps(schema, sort_keys=True))
        return allow_list_problems(schema, keys_checked=keys_checked)
    except (TypeError, ValueError, RecursionError):
        # The validator's own message is not repeated: it may quote the schema at length.
        return ["schema: not a usable JSON Schema 2020-12 (or it refers outside itself)"]
