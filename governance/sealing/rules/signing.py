"""The key that signs heads, from a file or the environment. It is not in the database: somebody with the rights to
change the record there could also sign it."""

import os
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from governance.sealing.rules.merkle import key_id, verifier_key


class KeyUnreadable(RuntimeError):
    """The sealing key is missing or is not 32 bytes of base64."""


@dataclass(frozen=True, slots=True)
class SealingKey:
    """`name` is the log's origin, which is part of the heads and of the verifier key."""

    name: str
    private: Ed25519PrivateKey

    @property
    def id(self) -> str:
        return key_id(self.name, self.private.public_key()).hex()

    @property
    def verifier(self) -> str:
        return verifier_key(self.name, self.private.public_key())


def sealing_key_read(*, name: str, text: str = "", file: str = "", create: bool = False) -> SealingKey:
    """Read the key. `create`: make a missing file, readable by this account only; not for production."""
    if not text and file and create and not Path(file).exists():
        _make(Path(file))
    try:
        seed = b64decode(text or Path(file).read_text().strip(), validate=True)
        return SealingKey(name, Ed25519PrivateKey.from_private_bytes(seed))
    except (OSError, ValueError, Base64Error) as error:
        raise KeyUnreadable("the sealing key cannot be read") from error


def _make(file: Path) -> None:
    """Make a new key file, unless another process was first."""
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    seed = Ed25519PrivateKey.generate().private_bytes(Encoding.Raw, PrivateFormat.Raw, NoEncryption())
    draft = file.with_name(f"{file.name}.{os.getpid()}.new")
    # With its mode from the start: between a plain write and a chmod, others could read the key.
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as stream:
        stream.write(b64encode(seed).decode() + "\n")
    # A link fails if the name is taken; a rename would replace a key that another process uses already. And no
    # process reads half a file.
    with suppress(FileExistsError):
        os.link(draft, file)
    draft.unlink()
