"""Short notes: past the boundary's detectors, outside the ledger, erasable. The ledger gets the salted hash."""

from hashlib import sha256
from secrets import token_bytes
from uuid import UUID

from governance.boundary import inspect_note
from governance.errors import MetadataBoundary
from governance.models import Note
from reasoncodes.errors import FieldError


def text_check(*, text: str, pointer: str) -> None:
    """Refuses text that looks like a person, a secret or a patient's record. Names the rule, never the text."""
    findings = inspect_note(text, pointer=pointer)
    if findings:
        raise MetadataBoundary(errors=[FieldError(f.pointer, f.message, rule=f.rule) for f in findings])


def note_create(*, organization_id: UUID | None, text: str, pointer: str = "/note") -> Note | None:
    """None for an empty text."""
    if not text.strip():
        return None
    text_check(text=text, pointer=pointer)
    salt = token_bytes(16)
    return Note.objects.create(
        organization_id=organization_id, text=text, salt=salt, sha256=sha256(salt + text.encode()).hexdigest()
    )
