"""Checks what people write with the boundary's detectors, and stores notes. Requests of callers are checked by
enforcement, with the contract's own boundary document."""

import re
from collections.abc import Iterator
from hashlib import sha256
from secrets import token_bytes
from typing import Any
from urllib.parse import unquote_plus
from uuid import UUID

from governance.boundary.errors import MetadataBoundary
from governance.boundary.models import Note
from governance.boundary.rules import (
    BoundaryFinding,
    inspect_field_name,
    inspect_handle,
    inspect_note,
    inspect_title,
)
from reasoncodes.base.errors import FieldError


def text_check(*, text: str, pointer: str) -> None:
    """Refuses a title or a reason that looks like a person's name or data, a secret or a patient's record. The refusal
    names the rule, never the text."""
    _refuse(list(inspect_title(text, pointer=pointer)))


def note_check(*, text: str, pointer: str) -> None:
    """The same for a note about one case, in which clinical phrases are found too."""
    _refuse(list(inspect_note(text, pointer=pointer)))


def reference_check(*, reference: str, pointer: str) -> None:
    """Refuses what does not look like a reference. Stricter than `text_check`: an identifier is one or two words."""
    _refuse(list(inspect_field_name(reference, pointer=pointer)) if reference else [])


def handle_check(*, handle: str, pointer: str) -> None:
    """Refuses an identifier with a person's name in it, also without spaces, or with what no reference may contain."""
    _refuse(list(inspect_handle(handle, pointer=pointer)) if handle else [])


def path_check(*, path: str, pointer: str) -> None:
    """Checks each part of an address after the host, decoded as its receiver decodes it."""
    parts = [unquote_plus(part) for part in re.split(r"[/?&=;]", path) if part]
    _refuse([finding for part in parts for finding in inspect_handle(part, pointer=pointer)])


def content_check(*, content: Any, pointer: str) -> None:
    """Checks every string of a document that an operator wrote, including the names of its fields."""
    # The pointer names the whole document: a path inside it is made of its keys, and a key may be the refused text.
    _refuse([finding for text in _strings(content) for finding in _findings(text, pointer)])


# The detectors are made for notes, so a longer text is checked in pieces of a note's length. The pieces overlap by more
# than any detector has to see at once; otherwise a number could be cut in two and not be recognized.
PIECE = 280
OVERLAP = 100
# Twelve plain words in a row are a sentence. Conditions and patterns are long too, but have operators between words.
PROSE = re.compile(r"(?:[^\W\d_']+[ ,.;:!?]+){12}")


def _findings(text: str, pointer: str) -> Iterator[BoundaryFinding]:
    if len(text) > PIECE and PROSE.search(text):
        yield BoundaryFinding(pointer, "free_text")
    for start in range(0, max(1, len(text) - OVERLAP), PIECE - OVERLAP):
        yield from inspect_title(text[start : start + PIECE], pointer=pointer)


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
        raise MetadataBoundary(errors=[FieldError(f.pointer, f.message, rule=f.rule, remedy=f.remedy) for f in unique])


def note_create(*, organization_id: UUID | None, text: str, pointer: str = "/note") -> Note | None:
    """Checks and stores a note. None for an empty text."""
    if not text.strip():
        return None
    note_check(text=text, pointer=pointer)
    # The ledger keeps the hash after the text was erased. Without a salt, short texts could be guessed from it.
    salt = token_bytes(16)
    return Note.objects.create(
        organization_id=organization_id, text=text, salt=salt, sha256=sha256(salt + text.encode()).hexdigest()
    )
