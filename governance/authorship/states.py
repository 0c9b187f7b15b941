"""What somebody can be an author of, or answer for. The model and its check constraint read this list."""

from enum import StrEnum


class WorkKind(StrEnum):
    DOCUMENT = "document"
    POLICY = "policy"
    DEFINITION = "definition"
    SHUTDOWN = "shutdown"
    LEGAL_HOLD = "legal_hold"
    DELETION = "deletion_request"
    SERVICE = "service_account"
