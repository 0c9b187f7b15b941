"""Inspects metadata, references and notes, and collects findings."""

import re
from collections.abc import Mapping
from typing import Any, Final

from governance.boundary.rules.detectors import (
    CONFIGURATION_RULES,
    DETECTOR_NAMES,
    InspectedText,
    TextForm,
    is_ordinary,
    tripped,
)
from governance.boundary.rules.detectors.person import name_in_handle
from governance.boundary.rules.editions import CURRENT
from governance.boundary.rules.facts import fact_findings
from governance.boundary.rules.findings import BoundaryFinding, ordered
from governance.boundary.rules.keys import KeyFacts, ends_with, key_facts
from governance.boundary.rules.limits import broken_limit
from governance.boundary.rules.pointers import Path, boundary_pointer
from governance.boundary.rules.policy import BoundaryPolicy
from governance.boundary.rules.schema import schema_errors
from governance.boundary.rules.text import has_broken_characters, normalise

ROOT: Final = "/metadata"
# A detector's time grows with the length of the text. Longer texts are refused without being searched.
MAX_STRING: Final = 4096
MAX_REFERENCE: Final = 1024
MAX_NOTE: Final = 280
# Larger integers lose digits in programs that read JSON numbers as doubles: the stored value would be another one.
_SAFE_INTEGER: Final = 2**53 - 1
_SMALLEST_CHECKED: Final = 10**8
_LARGEST_CHECKED: Final = 10**20
_ALL: Final = frozenset(DETECTOR_NAMES)
_NAMES_OF_FIELDS: Final = _ALL - {"clinical_phrase"}
_NO_HINTS: Final[frozenset[str]] = frozenset()
_PLAIN_HINTS: Final = frozenset(["role", "quantity"])
_CONTAINERS: Final = (dict, list, tuple)
# What nearly every caller sends. Nothing can be found in it, so it is not searched.
_OPAQUE_HANDLE: Final = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[a-z]{1,2}-[0-9]{1,6}", re.ASCII
)


def inspect_metadata(
    metadata: Mapping[str, Any], *, policy: BoundaryPolicy, edition: int = CURRENT
) -> tuple[BoundaryFinding, ...]:
    """Everything that is wrong with a metadata object, sorted. Empty: it may be recorded. `edition`: that of the
    decision."""
    if not isinstance(metadata, Mapping):
        return (BoundaryFinding(ROOT, "schema_type"),)
    root = metadata if type(metadata) is dict else dict(metadata)
    # Limits first: they bound the work of everything that follows.
    limit = broken_limit(root, max_bytes=policy.max_bytes, max_depth=policy.max_depth)
    if limit is not None:
        return (BoundaryFinding(ROOT, limit),)
    found = _Walk(policy, edition).run(root)
    if policy.facts:
        found.extend(fact_findings(policy.facts, root))
    # The validator takes JSON only; it would raise on a value that is not.
    if policy.validator is not None and not any(rule == "not_json" for _, rule in found):
        found.extend(schema_errors(policy.validator, _without_facts(root, policy)))
    if not found:
        return ()
    known = policy.known_keys
    return ordered(
        BoundaryFinding(boundary_pointer(path, root=root, base=ROOT, known=known), rule) for path, rule in found
    )


def _without_facts(root: dict[str, Any], policy: BoundaryPolicy) -> dict[str, Any]:
    """What the schema judges: a fact is declared by its own rule, not by the schema."""
    if not policy.facts:
        return root
    declared = {fact.name for fact in policy.facts}
    return {name: value for name, value in root.items() if name not in declared}


def inspect_reference(value: str, *, pointer: str, edition: int = CURRENT) -> tuple[BoundaryFinding, ...]:
    """Inspects an opaque identifier: at most two words, and nothing personal or secret in it."""
    return _inspect_text(value, pointer, TextForm.REFERENCE, MAX_REFERENCE, edition=edition)


def inspect_field_name(value: str, *, pointer: str, edition: int = CURRENT) -> tuple[BoundaryFinding, ...]:
    """Inspects the name of a written field, which may say what stands in it: `chest_pain`."""
    return _inspect_text(value, pointer, TextForm.REFERENCE, MAX_REFERENCE, rules=_NAMES_OF_FIELDS, edition=edition)


def inspect_handle(value: str, *, pointer: str) -> tuple[BoundaryFinding, ...]:
    """Inspects an identifier that stands in the record for ever: a reference in which names are also found without
    spaces between them. Not for what a decision depends on: earlier decisions must come out the same again."""
    if _OPAQUE_HANDLE.fullmatch(value):
        return ()
    found = () if is_ordinary(value, _NO_HINTS) else inspect_reference(value, pointer=pointer)
    if len(value) <= MAX_REFERENCE and name_in_handle(value if value.isascii() else normalise(value)):
        return ordered([*found, BoundaryFinding(pointer, "person_name")])
    return found


def inspect_note(text: str, *, pointer: str = "/note") -> tuple[BoundaryFinding, ...]:
    """Inspects a person's short note: sentences are allowed, up to 280 characters; all other rules apply."""
    return _inspect_text(text, pointer, TextForm.NOTE, MAX_NOTE)


def inspect_title(text: str, *, pointer: str) -> tuple[BoundaryFinding, ...]:
    """Inspects what is written about the installation itself: titles, reasons, rules. A workflow may be called "Chest
    pain triage"."""
    return _inspect_text(text, pointer, TextForm.NOTE, MAX_NOTE, rules=CONFIGURATION_RULES)


def _inspect_text(
    text: str, pointer: str, form: TextForm, longest: int, *, rules: frozenset[str] = _ALL, edition: int = CURRENT
) -> tuple[BoundaryFinding, ...]:
    if not isinstance(text, str):
        return (BoundaryFinding(pointer, "schema_type"),)
    if len(text) > longest:
        return (BoundaryFinding(pointer, "too_large"),)
    broken = list(tripped(InspectedText(normalise(text), _NO_HINTS, form), rules, edition))
    if has_broken_characters(text):
        broken.append("control_character")
    return ordered(BoundaryFinding(pointer, rule) for rule in broken)


class _Walk:
    """Collects (path, rule). Paths become pointers later, because most requests have no findings."""

    def __init__(self, policy: BoundaryPolicy, edition: int) -> None:
        self.edition = edition
        self.active = policy.active
        self.built_in_keys = "forbidden_key" in policy.active
        self.endings = policy.forbidden_endings
        self.found: list[tuple[Path, str]] = []
        self.waiting: list[tuple[Any, Path, frozenset[str]]] = []

    def run(self, root: dict[str, Any]) -> list[tuple[Path, str]]:
        # A list of what is left instead of recursion: the depth comes from the caller.
        self.waiting.append((root, (), _NO_HINTS))
        while self.waiting:
            container, path, hints = self.waiting.pop()
            if isinstance(container, dict):
                self._object(container, path, hints)
            else:
                for index, item in enumerate(container):
                    self._value(item, path, index, hints)
        return self.found

    def _object(self, container: dict[Any, Any], path: Path, inherited: frozenset[str]) -> None:
        for key, value in container.items():
            if type(key) is not str:
                self.found.append(((*path, key), "not_json"))
                continue
            facts = key_facts(key, self.edition)
            if facts.forbidden or facts.rules or facts.broken or self.endings:
                self._key(facts, (*path, key))
            self._value(value, path, key, facts.hints | inherited if inherited else facts.hints)

    def _key(self, facts: KeyFacts, path: Path) -> None:
        if (facts.forbidden and self.built_in_keys) or any(ends_with(facts.words, e) for e in self.endings):
            self.found.append((path, "forbidden_key"))
        self.found.extend((path, rule) for rule in facts.rules if rule in self.active)
        if facts.broken:
            self.found.append((path, "control_character"))

    def _value(self, value: Any, path: Path, step: str | int, hints: frozenset[str]) -> None:
        if type(value) is str:
            self._text(value, path, step, hints)
        elif value is None or type(value) is bool:
            return
        elif type(value) is int or type(value) is float:
            self._number(value, path, step, hints)
        elif isinstance(value, _CONTAINERS):
            self.waiting.append((value, (*path, step), hints - _PLAIN_HINTS if hints else hints))
        else:
            self.found.append(((*path, step), "not_json"))

    def _text(self, raw: str, path: Path, step: str | int, hints: frozenset[str]) -> None:
        if is_ordinary(raw, hints, self.edition):
            return
        if len(raw) > MAX_STRING:
            self.found.append(((*path, step), "too_large"))
            return
        if has_broken_characters(raw):
            self.found.append(((*path, step), "control_character"))
        for rule in tripped(InspectedText(normalise(raw), hints), self.active, self.edition):
            self.found.append(((*path, step), rule))

    def _number(self, value: float, path: Path, step: str | int, hints: frozenset[str]) -> None:
        """Inspects a number as decimal text if it is long enough for an identifier, or if its key hints at one."""
        if value != value or value in (float("inf"), float("-inf")):
            self.found.append(((*path, step), "not_json"))
            return
        size = abs(value)
        if type(value) is int and size > _SAFE_INTEGER:
            self.found.append(((*path, step), "number_range"))
        if size < _LARGEST_CHECKED and (size >= _SMALLEST_CHECKED or not hints <= _PLAIN_HINTS):
            text = str(int(size)) if size == int(size) else repr(size)
            for rule in tripped(InspectedText(text, hints), self.active & _NUMERIC, self.edition):
                self.found.append(((*path, step), rule))


# The rules that a bare number can break. It is never a sentence, a name or a token.
_NUMERIC: Final = frozenset(
    ["card_number", "national_id", "insurance_id", "medical_record_number", "phone", "date_of_birth"]
)
