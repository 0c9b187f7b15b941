"""The boundary of one contract, compiled: schema, limits, additional forbidden keys, and active detectors."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from jsonschema_rs import Draft202012Validator

from governance.boundary.rules.detectors import ALWAYS_ON, DETECTOR_NAMES
from governance.boundary.rules.document import DEFAULT_DOCUMENT, validate_boundary_document
from governance.boundary.rules.facts import Fact, facts_of
from governance.boundary.rules.keys import key_words
from governance.boundary.rules.schema import compiled, property_names

DEFAULT_MAX_BYTES: Final = 4096
DEFAULT_MAX_DEPTH: Final = 4
_DEEPEST: Final = 32


class BoundaryDocumentError(ValueError):
    """The contract's `metadata_boundary` document cannot be used; `problems` says why."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("invalid metadata_boundary document: " + "; ".join(problems))
        self.problems = problems


@dataclass(frozen=True)
class BoundaryPolicy:
    """The compiled boundary. With `schema=None` no allow-list is checked; limits, keys and detectors still are."""

    schema: Mapping[str, Any] | None
    max_bytes: int = DEFAULT_MAX_BYTES
    forbidden_keys: tuple[str, ...] = ()
    detectors: tuple[str, ...] = DETECTOR_NAMES
    max_depth: int = DEFAULT_MAX_DEPTH
    facts: tuple[Fact, ...] = ()
    active: frozenset[str] = field(init=False, repr=False, compare=False)
    validator: Draft202012Validator | None = field(init=False, repr=False, compare=False)
    forbidden_endings: tuple[tuple[str, ...], ...] = field(init=False, repr=False, compare=False)
    known_keys: frozenset[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        unknown = sorted(set(self.detectors) - set(DETECTOR_NAMES))
        if unknown:
            raise BoundaryDocumentError([f"unknown detector {name!r}" for name in unknown])
        if not 1 <= self.max_depth <= _DEEPEST:
            raise BoundaryDocumentError([f"max_depth must be from 1 to {_DEEPEST}"])
        # Computed once per contract and not per request. A frozen dataclass has no other way to set a field.
        object.__setattr__(self, "active", frozenset(self.detectors) | ALWAYS_ON)
        object.__setattr__(self, "validator", _validator(self.schema))
        object.__setattr__(self, "forbidden_endings", tuple(map(key_words, self.forbidden_keys)))
        object.__setattr__(self, "known_keys", frozenset(property_names(self.schema)) | {f.name for f in self.facts})

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> "BoundaryPolicy":
        """Raises BoundaryDocumentError if the document cannot be used. It is not repaired: attempts are denied then."""
        try:
            text = json.dumps(document, sort_keys=True)
        except (TypeError, ValueError, RecursionError):
            raise BoundaryDocumentError(["the document is not JSON"]) from None
        return _from_text(text)


def _validator(schema: Mapping[str, Any] | None) -> Draft202012Validator | None:
    if schema is None:
        return None
    try:
        return compiled(json.dumps(schema, sort_keys=True))
    except (TypeError, ValueError, RecursionError):
        raise BoundaryDocumentError(["schema: not a usable JSON Schema 2020-12"]) from None


# Cached by text, because a dictionary cannot be a key: schema and limits are compiled once and not for every request.
@lru_cache(maxsize=256)
def _from_text(text: str) -> BoundaryPolicy:
    document = json.loads(text)
    problems = validate_boundary_document(document)
    if problems:
        raise BoundaryDocumentError(problems)
    disabled = set(document.get("detectors", {}).get("disabled", ()))
    return BoundaryPolicy(
        schema=document.get("schema", DEFAULT_DOCUMENT["schema"]),
        max_bytes=document.get("max_bytes", DEFAULT_MAX_BYTES),
        max_depth=document.get("max_depth", DEFAULT_MAX_DEPTH),
        forbidden_keys=tuple(document.get("forbidden_keys", ())),
        detectors=tuple(name for name in DETECTOR_NAMES if name not in disabled),
        facts=facts_of(document),
    )
