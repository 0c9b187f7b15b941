"""The ten policy documents of a contract: owners, schemas, safe defaults, validation and hashes. Pure: no database."""

from governance.contracts.rules.documents.area import Area, Document, DocumentProblem
from governance.contracts.rules.documents.areas.attempt_identity_envelope import (
    ENVELOPE_FIELDS,
    REFERENCE_FORMATS,
    RUNTIME_MODES,
)
from governance.contracts.rules.documents.areas.attempt_state_machine import FINAL_STATES, STATES, TRANSITIONS
from governance.contracts.rules.documents.areas.idempotency_key_policy import KEY_CHARSETS
from governance.contracts.rules.documents.catalog import AREAS, OWNER_GROUPS, area, default_documents
from governance.contracts.rules.documents.digest import document_sha256
from governance.contracts.rules.documents.errors import UnknownAreaError
from governance.contracts.rules.documents.retired import without_retired
from governance.contracts.rules.documents.validate import validate_document, validate_documents

__all__ = [
    "AREAS",
    "ENVELOPE_FIELDS",
    "FINAL_STATES",
    "KEY_CHARSETS",
    "OWNER_GROUPS",
    "REFERENCE_FORMATS",
    "RUNTIME_MODES",
    "STATES",
    "TRANSITIONS",
    "Area",
    "Document",
    "DocumentProblem",
    "UnknownAreaError",
    "area",
    "default_documents",
    "document_sha256",
    "validate_document",
    "validate_documents",
    "without_retired",
]
