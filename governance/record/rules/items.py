"""Bound rows as bytes: the database's clock, then one item per written row. Pure: a verifier that has only files reads
them the same way."""

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from struct import Struct
from typing import Final

# Microseconds since 1970 by the database's clock, when the transaction ended.
CLOCK: Final = Struct(">q")
# Table, shape and salt mark; id; version of the row; digest of its image.
ITEM: Final = Struct(">H16sI32s")
SALT: Final = 16
SALTED: Final = 1 << 15
SHAPES: Final = 10
NUMBER: Final = (1 << SHAPES) - 1
GONE: Final = bytes(32)
FORGOTTEN: Final = bytes(SALT)


@dataclass(frozen=True, slots=True)
class BoundItem:
    """One row as a transaction left it. `digest` is GONE if the transaction deleted it."""

    number: int
    shape: int
    row_id: bytes
    version: int
    digest: bytes
    salt: bytes | None
    """None: the table's digests are not salted. FORGOTTEN: an erasure destroyed it, so the digest says nothing."""

    @property
    def deleted(self) -> bool:
        return self.digest == GONE


class BoundRowsInvalid(ValueError):
    """The bytes are not those of bound rows."""


def items_read(rows: bytes, salts: bytes = b"") -> Iterator[BoundItem]:
    """The items of one part, in the order in which the rows were written."""
    if len(rows) < CLOCK.size or (len(rows) - CLOCK.size) % ITEM.size:
        raise BoundRowsInvalid("the length is not that of whole items")
    at = 0
    for code, row_id, version, digest in ITEM.iter_unpack(rows[CLOCK.size :]):
        salt = None
        if code & SALTED:
            salt = salts[at : at + SALT]
            if len(salt) != SALT:
                raise BoundRowsInvalid("a salt is missing")
            at += SALT
        yield BoundItem(code & NUMBER, (code & ~SALTED) >> SHAPES, row_id, version, digest, salt)
    if at != len(salts):
        raise BoundRowsInvalid("there are more salts than salted rows")


def clock_read(rows: bytes) -> int:
    """Microseconds since 1970."""
    if len(rows) < CLOCK.size:
        raise BoundRowsInvalid("the clock is missing")
    return int(CLOCK.unpack_from(rows)[0])


def leaf_data(entry_sha256: bytes, rows: bytes | None) -> bytes:
    """What the leaf of an entry covers: its hash, and the hash of the rows that are bound to it (all parts, joined)."""
    return entry_sha256 if rows is None else entry_sha256 + sha256(rows).digest()


def image_digest(image: str, *, salt: bytes | None) -> bytes:
    """The digest of a row's image, as the database computes it."""
    return sha256((salt or b"") + image.encode()).digest()
