"""Cosignatures of witnesses under a signed head: C2SP tlog-cosignature, `cosignature/v1`, Ed25519 with a time."""

import struct
from binascii import Error as Base64Error
from dataclasses import dataclass
from hashlib import sha256

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from governance.sealing.rules.merkle.checkpoint import CheckpointInvalid, base64_read, checkpoint_read, public_bytes

COSIGNATURE = b"\x04"
# Four bytes of key id, eight of time, 64 of signature.
LENGTH = 76


@dataclass(frozen=True, slots=True)
class CosignerKey:
    """The pinned key of a witness. The kind of key is part of its id: a key of a log cannot be given for it."""

    name: str
    id: bytes
    public: Ed25519PublicKey


def cosigner_key_read(text: str) -> CosignerKey:
    """A witness' verifier key (name+id+base64). Raises CheckpointInvalid."""
    try:
        name, given, encoded = text.strip().split("+", 2)
        raw = base64_read(encoded)
        public = Ed25519PublicKey.from_public_bytes(raw[1:])
    except (ValueError, Base64Error) as error:
        raise CheckpointInvalid("not a verifier key of a witness") from error
    mark = sha256(name.encode() + b"\n" + COSIGNATURE + public_bytes(public)).digest()[:4]
    if raw[:1] != COSIGNATURE or mark.hex() != given or not name:
        raise CheckpointInvalid("not a verifier key of a witness")
    return CosignerKey(name, mark, public)


def cosignature_find(text: str, *, key: CosignerKey) -> str:
    """The line in which this witness cosigned the head; empty if there is none. Raises CheckpointInvalid if there is
    one that does not fit."""
    checkpoint, signatures = checkpoint_read(text)
    lines = text.rpartition("\n\n")[2].split("\n")
    for (name, raw), line in zip(signatures, lines, strict=False):
        if name == key.name and raw[:4] == key.id:
            if len(raw) != LENGTH:
                raise CheckpointInvalid("the cosignature has another length")
            (at,) = struct.unpack(">Q", raw[4:12])
            try:
                key.public.verify(raw[12:], f"cosignature/v1\ntime {at}\n{checkpoint.body}".encode())
            except InvalidSignature as error:
                raise CheckpointInvalid("the cosignature does not fit the head") from error
            return line
    return ""
