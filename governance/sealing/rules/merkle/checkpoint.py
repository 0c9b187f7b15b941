"""Signed tree heads as text: C2SP tlog-checkpoint, a signed note with Ed25519 signatures."""

from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

ED25519 = b"\x01"
DASH = "\u2014"


class CheckpointInvalid(ValueError):
    """Not a checkpoint, or not signed by a known key; the message says which."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What is signed. `origin` names the log; `extensions` are further lines of the body."""

    origin: str
    size: int
    root: bytes
    extensions: tuple[str, ...] = ()

    @property
    def body(self) -> str:
        lines = [self.origin, str(self.size), b64encode(self.root).decode(), *self.extensions]
        return "".join(f"{line}\n" for line in lines)


def public_bytes(key: Ed25519PublicKey) -> bytes:
    return key.public_bytes(Encoding.Raw, PublicFormat.Raw)


def key_id(name: str, key: Ed25519PublicKey) -> bytes:
    """The four bytes by which a signature line names its key."""
    return sha256(name.encode() + b"\n" + ED25519 + public_bytes(key)).digest()[:4]


def verifier_key(name: str, key: Ed25519PublicKey) -> str:
    """The key as C2SP writes it: name+id+base64."""
    return f"{name}+{key_id(name, key).hex()}+{b64encode(ED25519 + public_bytes(key)).decode()}"


def base64_read(text: str) -> bytes:
    """Decode base64, in its canonical form only."""
    # The last character has unused bits: without this check one value would have several texts, all of them valid.
    value = b64decode(text, validate=True)
    if b64encode(value).decode() != text:
        raise ValueError("not the canonical form")
    return value


def checkpoint_sign(checkpoint: Checkpoint, *, name: str, key: Ed25519PrivateKey) -> str:
    """The text with one signature line."""
    signature = key.sign(checkpoint.body.encode())
    return checkpoint_signed(checkpoint, name=name, key=key.public_key(), signature=signature)


def checkpoint_signed(checkpoint: Checkpoint, *, name: str, key: Ed25519PublicKey, signature: bytes) -> str:
    """The text with the signature that somebody else made."""
    line = b64encode(key_id(name, key) + signature).decode()
    return f"{checkpoint.body}\n{DASH} {name} {line}\n"


def checkpoint_read(text: str) -> tuple[Checkpoint, list[tuple[str, bytes]]]:
    """The body and its signature lines (name, key id + signature), unchecked."""
    body, separator, tail = text.rpartition("\n\n")
    lines = body.split("\n")
    if not separator or not tail.endswith("\n") or len(lines) < 3:
        raise CheckpointInvalid("not a signed checkpoint")
    signatures = [_signature(line) for line in tail[:-1].split("\n")]
    try:
        root, size = base64_read(lines[2]), int(lines[1])
    except (ValueError, Base64Error) as error:
        raise CheckpointInvalid("size or root cannot be read") from error
    if len(root) != 32 or str(size) != lines[1] or size < 0 or not lines[0]:
        raise CheckpointInvalid("size or root cannot be read")
    return Checkpoint(lines[0], size, root, tuple(lines[3:])), signatures


def checkpoint_verify(text: str, *, keys: Sequence[tuple[str, Ed25519PublicKey]]) -> Checkpoint:
    """The checkpoint, if at least one of `keys` signed it. Raises if a signature of one of them is wrong. Signatures of
    other keys are ignored, as C2SP demands: a witness may add its own."""
    checkpoint, signatures = checkpoint_read(text)
    good = False
    for name, signature in signatures:
        for known, key in keys:
            if name == known and signature[:4] == key_id(known, key):
                _verify(key, signature[4:], checkpoint.body)
                good = True
    if not good:
        raise CheckpointInvalid("none of the known keys signed it")
    return checkpoint


def _verify(key: Ed25519PublicKey, signature: bytes, body: str) -> None:
    try:
        key.verify(signature, body.encode())
    except InvalidSignature as error:
        raise CheckpointInvalid("the signature does not fit") from error


def _signature(line: str) -> tuple[str, bytes]:
    parts = line.split(" ")
    try:
        dash, name, encoded = parts
        signature = base64_read(encoded)
    except (ValueError, Base64Error) as error:
        raise CheckpointInvalid("a signature line cannot be read") from error
    if dash != DASH or len(signature) < 5:
        raise CheckpointInvalid("a signature line cannot be read")
    return name, signature


def verifier_key_read(text: str) -> tuple[str, Ed25519PublicKey]:
    """Name and key of a verifier key (name+id+base64)."""
    try:
        name, given, encoded = text.strip().split("+", 2)
        raw = base64_read(encoded)
        key = Ed25519PublicKey.from_public_bytes(raw[1:])
    except (ValueError, Base64Error) as error:
        raise CheckpointInvalid("not a verifier key") from error
    if raw[:1] != ED25519 or key_id(name, key).hex() != given:
        raise CheckpointInvalid("the verifier key does not fit its own id")
    return name, key
