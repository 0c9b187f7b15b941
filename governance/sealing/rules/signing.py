"""Who signs heads: a key from a file or the environment, or a signer outside of this process. No private half is in the
database: somebody with the rights to change the record there could also sign it."""

import os
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from governance.sealing.rules.merkle import key_id, verifier_key

Prove = Callable[[int], list[bytes]]
"""Of a size: the RFC 9162 proof that the tree of that size is the beginning of the one that is being signed."""


class SealingStopped(RuntimeError):
    """Nothing can be sealed now; nothing is lost, the entries wait. `code` is our own word for why."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class KeyUnreadable(SealingStopped):
    """The sealing key is missing or is not 32 bytes of base64."""

    def __init__(self) -> None:
        super().__init__("key_unreadable")


class SignerFailed(SealingStopped):
    """The signer is away, refuses, or its signature does not fit."""


class Signer(Protocol):
    """Holds the private half. `cryptography`'s own private keys are signers too."""

    def public_key(self) -> Ed25519PublicKey: ...

    def sign(self, data: bytes, /) -> bytes: ...


@runtime_checkable
class HeadSigner(Protocol):
    """A signer that signs nothing but heads, and only those that continue the last one it signed."""

    def public_key(self) -> Ed25519PublicKey: ...

    def sign_head(self, body: bytes, *, prove: Prove) -> bytes: ...


@dataclass(frozen=True, slots=True)
class SealingKey:
    """`name` is the log's origin, which is part of the heads and of the verifier key."""

    name: str
    signer: Signer | HeadSigner

    @property
    def public(self) -> Ed25519PublicKey:
        return self.signer.public_key()

    @property
    def id(self) -> str:
        return key_id(self.name, self.public).hex()

    @property
    def verifier(self) -> str:
        return verifier_key(self.name, self.public)

    def sign_head(self, body: bytes, *, prove: Prove) -> bytes:
        """The signature of a head's body. A wrong one is refused here: a head that does not verify is never stored."""
        # The key as it was known before: a signer that got another key meanwhile is noticed, and asked again later.
        public = self.public
        if isinstance(self.signer, HeadSigner):
            return _checked(public, body, self.signer.sign_head(body, prove=prove))
        return _checked(public, body, self.signer.sign(body))

    def sign_text(self, text: bytes) -> bytes:
        """The signature of another text. Signers of heads only have to be asked at their own machine."""
        if isinstance(self.signer, HeadSigner):
            raise SignerFailed("signs_heads_only")
        return _checked(self.public, text, self.signer.sign(text))


def _checked(public: Ed25519PublicKey, data: bytes, signature: bytes) -> bytes:
    try:
        public.verify(signature, data)
    except InvalidSignature as error:
        raise SignerFailed("wrong_signature") from error
    return signature


def sealing_key_read(*, name: str, text: str = "", file: str = "", create: bool = False) -> SealingKey:
    """Read the key. `create`: make a missing file, readable by this account only; not for production."""
    if not text and file and create and not Path(file).exists():
        sealing_key_make(Path(file))
    try:
        seed = b64decode(text or Path(file).read_text().strip(), validate=True)
        return SealingKey(name, Ed25519PrivateKey.from_private_bytes(seed))
    except (OSError, ValueError, Base64Error) as error:
        raise KeyUnreadable from error


def sealing_key_make(file: Path) -> None:
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
