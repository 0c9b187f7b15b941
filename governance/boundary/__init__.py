"""The metadata boundary (law 6): finds what must not enter a record and names where, never what.
Pure: no database, no clock, no settings."""

from governance.boundary.document import validate_boundary_document
from governance.boundary.findings import Finding
from governance.boundary.inspection import inspect_metadata, inspect_note, inspect_reference
from governance.boundary.policy import DEFAULT_DOCUMENT, BoundaryDocumentError, BoundaryPolicy

__all__ = [
    "DEFAULT_DOCUMENT",
    "BoundaryDocumentError",
    "BoundaryPolicy",
    "Finding",
    "inspect_metadata",
    "inspect_note",
    "inspect_reference",
    "validate_boundary_document",
]
