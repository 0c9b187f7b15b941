"""Handovers between sealing keys: a text, signed by the old key, that names the next one. Somebody who trusts one key
of the ledger can follow them to every later key. Pure; `sdk/holdpoint_verify.py` reads the same lines."""

from base64 import b64encode
from binascii import Error as Base64Error
from dataclasses import dataclass

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from governance.sealing.rules.merkle import key_id
from governance.sealing.rules.merkle.checkpoint import CheckpointInvalid, base64_read, verifier_key_read

FORM = "holdpoint-key-handover-v1"
WORD = "handover"


class HandoverInvalid(ValueError):
    """Not a handover, or not signed by the old key; the message says which."""


@dataclass(frozen=True, slots=True)
class Handover:
    """`old` and `new` are verifier keys (name+id+base64); `size` counts the entries under the newest head then."""

    old: str
    new: str
    size: int
    signature: bytes

    @property
    def text(self) -> bytes:
        return handover_text(old=self.old, new=self.new, size=self.size)

    @property
    def line(self) -> str:
        """As files carry it."""
        return f"{WORD} {self.old} {self.new} {self.size} {b64encode(self.signature).decode()}"


def handover_text(*, old: str, new: str, size: int) -> bytes:
    return f"{FORM}\n{old}\n{new}\n{size}\n".encode()


def handover_read(line: str) -> Handover:
    """A line, unchecked."""
    parts = line.strip().split(" ")
    try:
        word, old, new, size, signature = parts
        found = Handover(old, new, int(size), base64_read(signature))
    except (ValueError, Base64Error) as error:
        raise HandoverInvalid("it is not a handover of keys") from error
    if word != WORD or str(found.size) != size or found.size < 0:
        raise HandoverInvalid("it is not a handover of keys")
    return found


def handover_verify(handover: Handover) -> tuple[str, str]:
    """The ids of both keys. Raises unless the old key signed it and both are of one ledger."""
    (name, old), (other, new) = _key(handover.old), _key(handover.new)
    if name != other:
        raise HandoverInvalid("the keys are of two ledgers")
    try:
        old.verify(handover.signature, handover.text)
    except InvalidSignature as error:
        raise HandoverInvalid("the old key did not sign it") from error
    return key_id(name, old).hex(), key_id(other, new).hex()


def _key(text: str) -> tuple[str, Ed25519PublicKey]:
    try:
        return verifier_key_read(text)
    except CheckpointInvalid as error:
        raise HandoverInvalid(str(error)) from error
