"""The metadata boundary (law 6): finds what must not enter a record. A finding says where it is, never what it is.
Pure: no database, no clock, no settings."""

from governance.boundary.rules.document import DEFAULT_DOCUMENT, validate_boundary_document
from governance.boundary.rules.editions import CURRENT, FIRST
from governance.boundary.rules.fact_declarations import declaration_problems
from governance.boundary.rules.facts import (
    Fact,
    ShownFact,
    facts_carried,
    facts_of,
    facts_shown,
    facts_stated,
    facts_typed,
)
from governance.boundary.rules.findings import BoundaryFinding
from governance.boundary.rules.inspection import (
    inspect_field_name,
    inspect_handle,
    inspect_metadata,
    inspect_note,
    inspect_reference,
    inspect_title,
)
from governance.boundary.rules.policy import BoundaryDocumentError, BoundaryPolicy

__all__ = [
    "CURRENT",
    "DEFAULT_DOCUMENT",
    "FIRST",
    "BoundaryDocumentError",
    "BoundaryFinding",
    "BoundaryPolicy",
    "Fact",
    "ShownFact",
    "declaration_problems",
    "facts_carried",
    "facts_of",
    "facts_shown",
    "facts_stated",
    "facts_typed",
    "inspect_field_name",
    "inspect_handle",
    "inspect_metadata",
    "inspect_note",
    "inspect_reference",
    "inspect_title",
    "validate_boundary_document",
]
