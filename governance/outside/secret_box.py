"""Secrets that must be used again in clear (second factors, tokens of other systems): sealed with SECRET_KEY at rest.

A reader of the database alone learns nothing. Each purpose has a key of its own, so that what was sealed for one is
useless for another. Changing SECRET_KEY makes people enter these secrets again.
"""

from base64 import urlsafe_b64encode
from hashlib import sha256

from cryptography.fernet import Fernet, InvalidToken

from governance.outside.configured import secret_keys


class SecretUnreadable(Exception):
    """Sealed with another SECRET_KEY, or altered."""


def seal(text: str, *, purpose: str) -> str:
    return _box(purpose).encrypt(text.encode()).decode()


def unseal(sealed: str, *, purpose: str) -> str:
    try:
        return _box(purpose).decrypt(sealed.encode()).decode()
    except InvalidToken as error:
        raise SecretUnreadable(purpose) from error


def _box(purpose: str) -> Fernet:
    key = sha256(f"holdpoint {purpose}\x00{secret_keys()[0]}".encode()).digest()
    return Fernet(urlsafe_b64encode(key))
