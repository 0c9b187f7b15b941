"""Short notes: past the boundary's detectors, outside the ledger, erasable. The ledger gets the salted hash.

What people write into contracts and policies is not a note but passes the same detectors on its way in.
"""

import re
from collections.abc import Iterator
from hashlib import sha256
from secrets import token_bytes
from typing import Any
from uuid import UUID

from governance.boundary.errors import MetadataBoundary
from governance.boundary.models import Note
from governance.boundary.rules import BoundaryFinding, inspect_note, inspect_reference
from reasoncodes.base.errors import FieldError


def text_check(*, text: str, pointer: str) -> None:
    """Refuses text that looks like a person, a secret or a patient's record. Names the rule, never the text."""
    _refuse(list(inspect_note(text, pointer=pointer)))


def reference_check(*, reference: str, pointer: str) -> None:
    """Stricter than a text: an identifier of something elsewhere, of one or two words."""
    _refuse(list(inspect_reference(reference, pointer=pointer)) if reference else [])


def content_check(*, content: Any, pointer: str) -> None:
    """Every string in what an operator wrote, names of fields too. Longer than a note is looked at piece by piece.
    The pointer names the whole: a path inside it could be the very thing."""
    _refuse([finding for text in _strings(content) for finding in _findings(text, pointer)])


PIECE = 280
OVERLAP = 100  # longer than anything that a detector has to see in one piece
# A dozen plain words in a row are a sentence; conditions and patterns have signs between theirs.
PROSE = re.compile(r"(?:[^\W\d_']+[ ,.;:!?]+){12}")


def _findings(text: str, pointer: str) -> Iterator[BoundaryFinding]:
    if len(text) > PIECE and PROSE.search(text):
        yield BoundaryFinding(pointer, "free_text")
    for start in range(0, max(1, len(text) - OVERLAP), PIECE - OVERLAP):
        yield from inspect_note(text[start : start + PIECE], pointer=pointer)


def _strings(content: Any) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    elif isinstance(content, dict):
        for key, value in content.items():
            yield str(key)
            yield from _strings(value)
    elif isinstance(content, list | tuple):
        for item in content:
            yield from _strings(item)


def _refuse(findings: list[BoundaryFinding]) -> None:
    if findings:
        unique = sorted(set(findings))
        raise MetadataBoundary(errors=[FieldError(f.pointer, f.message, rule=f.rule) for f in unique])


def note_create(*, organization_id: UUID | None, text: str, pointer: str = "/note") -> Note | None:
    """None for an empty text."""
    if not text.strip():
        return None
    text_check(text=text, pointer=pointer)
    salt = token_bytes(16)
    return Note.objects.create(
        organization_id=organization_id, text=text, salt=salt, sha256=sha256(salt + text.encode()).hexdigest()
    )
