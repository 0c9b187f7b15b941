"""Signs in a hardware module, through PKCS#11: the private half never leaves it."""

import os
from pathlib import Path
from threading import Lock
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from django.core.exceptions import ImproperlyConfigured

from governance.sealing.rules.signing import SignerFailed

# An Ed25519 point as PKCS#11 gives it: 32 bytes, in a DER octet string or bare.
DER_POINT = b"\x04\x20"


class TokenSigner:
    """An Ed25519 key (CKM_EDDSA) that is found by its label, in a token that is found by its own."""

    def __init__(self, *, module: str, token: str, label: str, pin: str) -> None:
        self._module, self._token, self._label, self._pin = module, token, label, pin
        self._public: Ed25519PublicKey | None = None
        self._process = 0
        self._one = Lock()

    def public_key(self) -> Ed25519PublicKey:
        if self._public is None:
            self._public = self._asked(self._read_public)
        return self._public

    def sign(self, data: bytes) -> bytes:
        return self._asked(lambda session: self._sign(session, data))

    def _asked(self, work: Any) -> Any:
        """One session per question: a token that was restarted is found again by itself."""
        pkcs11 = _library()
        try:
            library = pkcs11.lib(self._module)
            # A forked process may not use its parent's state of the library; the standard wants it begun anew.
            if self._process not in (0, os.getpid()):
                library.reinitialize()
            self._process = os.getpid()
            # One at a time: a token lets a process sign in once.
            with self._one, library.get_token(token_label=self._token).open(user_pin=self._pin) as session:
                return work(session)
        # Its messages may name slots and labels; our word is enough for people, the class for the log.
        except (pkcs11.exceptions.PKCS11Error, RuntimeError) as error:
            raise SignerFailed(f"token_{type(error).__name__.lower()}") from error

    def _read_public(self, session: Any) -> Ed25519PublicKey:
        pkcs11 = _library()
        key = session.get_key(
            object_class=pkcs11.ObjectClass.PUBLIC_KEY, key_type=pkcs11.KeyType.EC_EDWARDS, label=self._label
        )
        point = bytes(key[pkcs11.Attribute.EC_POINT])
        raw = point.removeprefix(DER_POINT) if len(point) == 34 else point
        try:
            return Ed25519PublicKey.from_public_bytes(raw)
        except ValueError as error:
            raise SignerFailed("token_no_ed25519_key") from error

    def _sign(self, session: Any, data: bytes) -> bytes:
        pkcs11 = _library()
        key = session.get_key(
            object_class=pkcs11.ObjectClass.PRIVATE_KEY, key_type=pkcs11.KeyType.EC_EDWARDS, label=self._label
        )
        return bytes(key.sign(data, mechanism=pkcs11.Mechanism.EDDSA))


def _library() -> Any:
    # Only installations with a hardware module need the package.
    try:
        import pkcs11
        import pkcs11.exceptions
    except ImportError as error:
        raise ImproperlyConfigured("HOLDPOINT_LEDGER_SIGNER=pkcs11:… needs the package python-pkcs11.") from error
    return pkcs11


def pin_read(*, value: str, source: str) -> str:
    """The PIN: itself, or the first line of a file (`file:/path` or `/path`)."""
    if not source:
        return value
    try:
        return Path(source.removeprefix("file:")).read_text().splitlines()[0].strip()
    except (OSError, IndexError) as error:
        raise SignerFailed("token_pin_unreadable") from error
