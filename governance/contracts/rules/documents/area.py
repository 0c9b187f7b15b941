"""The two value types of this package: a readiness area with its document, and a finding about a document."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Area:
    """One readiness area: who owns it, what its document looks like, and the safe document to start from."""

    name: str
    owner_group: str
    title: str
    description: str
    schema: Document
    default: Document


@dataclass(frozen=True, slots=True, order=True)
class DocumentProblem:
    """One finding. The message names fields and allowed values, never a string value of the document."""

    pointer: str
    rule: str
    message: str
