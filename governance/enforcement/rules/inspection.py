"""What the metadata boundary says about a request. Found once per decision and used by several evaluators."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from governance.boundary.rules import (
    CURRENT,
    DEFAULT_DOCUMENT,
    FIRST,
    BoundaryFinding,
    BoundaryPolicy,
    inspect_field_name,
    inspect_metadata,
    inspect_reference,
)
from governance.boundary.rules.detectors import is_ordinary
from governance.boundary.rules.readings import is_plain_hash
from governance.enforcement.rules.names import FIELDS_POINTER, REPEATED_REFERENCES, UNIQUE_REFERENCES

MAX_FIELD_FINDINGS: Final = 20
_DEEPEST: Final = 32
_EXPONENT_FROM: Final = 1e21
# The trace id of W3C traceparent. No detector finds anything in this shape, and nearly every request has one.
_TRACE_ID: Final = re.compile(r"[0-9a-f]{32}")
_NO_HINTS: Final[frozenset[str]] = frozenset()
_CONTAINERS: Final = (dict, list, tuple)
_REPEATED: Final = tuple((part, name, f"/{part}/{name}") for part, name in REPEATED_REFERENCES)
_UNIQUE: Final = tuple((part, name, f"/{part}/{name}") for part, name in UNIQUE_REFERENCES)
_REFERENCES: Final = frozenset(pointer for _, _, pointer in (*_REPEATED, *_UNIQUE))


@dataclass(frozen=True, slots=True)
class Inspection:
    """The findings of an inspection, or `failed` if it raised or took too long."""

    findings: tuple[BoundaryFinding, ...] = ()
    failed: bool = False
    refused: frozenset[str] = field(init=False)
    clean: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "refused", frozenset(finding.pointer for finding in self.findings))
        object.__setattr__(self, "clean", not self.failed and not self.findings)

    def may_judge(self, pointer: str) -> bool:
        """Whether an evaluator may use this value. A refused value is not stored, so a replay could not use it."""
        return pointer not in self.refused and not (self.failed and pointer in _REFERENCES)


NOTHING_FOUND: Final = Inspection()
NOT_INSPECTED: Final = Inspection(failed=True)


def inspect_request(
    request: Mapping[str, Any], *, metadata: Mapping[str, Any], policy: BoundaryPolicy | None, edition: int = CURRENT
) -> tuple[BoundaryFinding, ...]:
    """Everything that the boundary refuses, sorted. Without a contract there is no allow-list, so no metadata is
    accepted."""
    # A stored request: the refused values are gone, and the findings listed with it are the result of back then.
    withheld = request.get("withheld")
    if withheld:
        return tuple(sorted({BoundaryFinding(place["pointer"], place["rule"]) for place in withheld}))
    found = inspect_metadata(metadata, policy=policy or _without_contract(), edition=edition)
    for part, name, pointer in _REPEATED:
        value = request[part].get(name)
        if value is not None:
            found += _remembered(value, pointer, edition)
    for part, name, pointer in _UNIQUE:
        value = request[part].get(name)
        if value is not None and not _plainly_harmless(value, edition):
            found += inspect_reference(value, pointer=pointer, edition=edition)
    found += _field_findings(request["action"].get("fields", ()), edition)
    return tuple(sorted(set(found))) if found else ()


def _field_findings(names: Sequence[str], edition: int) -> tuple[BoundaryFinding, ...]:
    found: list[BoundaryFinding] = []
    for index, name in enumerate(names):
        if refused := _remembered_name(name, edition):
            found.extend(BoundaryFinding(f"{FIELDS_POINTER}/{index}", finding.rule) for finding in refused)
    return tuple(found[:MAX_FIELD_FINDINGS])


def _plainly_harmless(value: str, edition: int = CURRENT) -> bool:
    """Whether the full inspection would certainly find nothing. Saves it for most references; a test compares both."""
    if is_ordinary(value, _NO_HINTS, edition):
        return True
    return _TRACE_ID.fullmatch(value) is not None and (edition == FIRST or is_plain_hash(value))


# Only for references that repeat (connector, operation, field names): values that are different in every request would
# only push each other out.
@lru_cache(maxsize=4096)
def _remembered(value: str, pointer: str, edition: int) -> tuple[BoundaryFinding, ...]:
    return inspect_reference(value, pointer=pointer, edition=edition)


@lru_cache(maxsize=4096)
def _remembered_name(value: str, edition: int) -> tuple[BoundaryFinding, ...]:
    return inspect_field_name(value, pointer=FIELDS_POINTER, edition=edition)


@lru_cache(maxsize=1)
def _without_contract() -> BoundaryPolicy:
    return BoundaryPolicy.from_document(DEFAULT_DOCUMENT)


def as_stored(value: Any, *, depth: int = 0) -> Any:
    """The value as it will be read back from canonical JSON, which writes 2.0 as 2 (law 3). Copied only if something
    changes."""
    # Rules must see the stored form. A rule that distinguishes 2.0 from 2 would otherwise decide differently in a
    # replay.
    kind = type(value)
    if kind is float:
        return int(value) if value.is_integer() and abs(value) < _EXPONENT_FROM else value
    if kind not in _CONTAINERS or depth > _DEEPEST:
        return value
    items = value.items() if kind is dict else enumerate(value)
    changed = {}
    for step, item in items:
        if type(item) is not str and (stored := as_stored(item, depth=depth + 1)) is not item:
            changed[step] = stored
    if not changed:
        return value
    if kind is dict:
        return {**value, **changed}
    return [changed.get(step, item) for step, item in enumerate(value)]
