"""The two value types of this package: a readiness area, and a problem of a document."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Area:
    """One readiness area: its owner group, the schema of its document, and the safe default."""

    name: str
    owner_group: str
    title: str
    description: str
    schema: Document
    default: Document


@dataclass(frozen=True, slots=True, order=True)
class DocumentProblem:
    """One problem of a document. The message names fields and allowed values, never text from the document."""

    pointer: str
    rule: str
    message: str
