"""Encrypts secrets that Holdpoint needs in clear later: second factors, tokens of other systems.

Somebody who can only read the database learns nothing. Secrets that are only compared are hashed instead, elsewhere.
"""

from base64 import urlsafe_b64encode
from hashlib import sha256

from cryptography.fernet import Fernet, InvalidToken

from governance.outside.configured import secret_keys


class SecretUnreadable(Exception):
    """Encrypted with another SECRET_KEY, or altered."""


def seal(text: str, *, purpose: str) -> str:
    return _box(purpose).encrypt(text.encode()).decode()


def unseal(sealed: str, *, purpose: str) -> str:
    try:
        return _box(purpose).decrypt(sealed.encode()).decode()
    except InvalidToken as error:
        raise SecretUnreadable(purpose) from error


def _box(purpose: str) -> Fernet:
    # A key per purpose: a text that was encrypted for one purpose cannot be put in the place of another.
    # Only the current SECRET_KEY: after it was changed, people enter these secrets again.
    key = sha256(f"holdpoint {purpose}\x00{secret_keys()[0]}".encode()).digest()
    return Fernet(urlsafe_b64encode(key))
