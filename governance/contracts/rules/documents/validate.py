"""Validates one document, or the ten of a contract, and reports all problems."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from governance.contracts.rules.documents.area import DocumentProblem
from governance.contracts.rules.documents.catalog import AREAS, area
from governance.contracts.rules.documents.cross_rules import cross_problems
from governance.contracts.rules.documents.json_safety import integers_written_as_floats, pointer_to, unsafe_values
from governance.contracts.rules.documents.rules import RULES
from governance.contracts.rules.documents.shape import shape_problems


def validate_document(area_name: str, document: Any) -> tuple[DocumentProblem, ...]:
    """Everything that is wrong with one document, sorted by pointer. Never raises for any document; an unknown area
    name raises UnknownAreaError."""
    schema = area(area_name).schema
    # A value without a canonical form is reported as that alone: neither schema nor hash means anything for it.
    unsafe = tuple(unsafe_values(document))
    if unsafe:
        return tuple(sorted(set(unsafe)))
    found = {*shape_problems(area_name, document), *integers_written_as_floats(document, schema=schema)}
    if area_name in RULES:
        found.update(RULES[area_name](document))
    return tuple(sorted(found))


def validate_documents(documents: Any, *, effect: str) -> tuple[DocumentProblem, ...]:
    """Everything that is wrong with a contract's documents, alone and together. Pointers begin with the area's name."""
    if not isinstance(documents, Mapping):
        return (DocumentProblem("", "type", "must be an object with one document per area"),)
    found: list[DocumentProblem] = []
    for entry in AREAS:
        found.extend(_of_area(documents, entry.name))
    known = {entry.name for entry in AREAS}
    for name in documents:
        if name not in known:
            found.append(DocumentProblem(pointer_to(str(name)), "unknown_area", "is not a readiness area"))
    return (*found, *sorted(cross_problems(documents, effect=effect)))


def _of_area(documents: Mapping[str, Any], name: str) -> list[DocumentProblem]:
    if name not in documents:
        return [DocumentProblem(pointer_to(name), "missing_document", "is missing; every area needs its document")]
    return [
        DocumentProblem(pointer_to(name) + problem.pointer, problem.rule, problem.message)
        for problem in validate_document(name, documents[name])
    ]
