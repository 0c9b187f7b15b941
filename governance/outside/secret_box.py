"""Encrypts secrets that Holdpoint needs in clear later: second factors, tokens of other systems.

Somebody who can only read the database learns nothing. Secrets that are only compared are hashed instead, elsewhere.
A sealed text names the key that sealed it, `s1.<key id>.<Fernet token>`, so that `rotate_secrets` finds what is left
under a former SECRET_KEY. Texts from before that form are tokens alone.
"""

from base64 import urlsafe_b64encode
from dataclasses import dataclass
from hashlib import sha256

from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from governance.outside.configured import secret_keys

FORM = "s1"
SECOND_FACTOR = "second factor"


class SecretUnreadable(Exception):
    """Encrypted with a SECRET_KEY that this process does not have, or altered."""


class SecretKeyMissing(SecretUnreadable):
    """Encrypted with a SECRET_KEY that this process does not have: neither the current one nor a fallback."""


@dataclass(frozen=True, slots=True)
class SealedColumn:
    """A place in the database that holds sealed texts: a text column, or one key of a JSON column. `model` is
    `app.Model`."""

    model: str
    column: str
    purpose: str
    json_key: str = ""

    @property
    def words(self) -> str:
        return f"{self.model}.{self.column}" + (f".{self.json_key}" if self.json_key else "")


_columns: list[SealedColumn] = []


def register_sealed(*columns: SealedColumn) -> None:
    """Apps register theirs in `apps.py`: what is not registered would be lost with the next change of SECRET_KEY."""
    for column in columns:
        if column not in _columns:
            _columns.append(column)


def sealed_columns() -> tuple[SealedColumn, ...]:
    return tuple(_columns)


def seal(text: str, *, purpose: str) -> str:
    # A text that `rotate_secrets` does not know would become unreadable when the former key is taken away.
    if all(column.purpose != purpose for column in _columns):
        raise RuntimeError(f"no sealed column is registered for «{purpose}»: register_sealed in apps.py")
    current = secret_keys()[0]
    return f"{sealed_prefix()}{_box(purpose, current).encrypt(text.encode()).decode()}"


def unseal(sealed: str, *, purpose: str) -> str:
    """The clear text. Former keys (SECRET_KEY_FALLBACKS) open what they sealed."""
    named, token = _read(sealed)
    keys = [key for key in secret_keys() if named in ("", _key_mark(key))]
    if not keys:
        raise SecretKeyMissing(purpose)
    try:
        return MultiFernet([_box(purpose, key) for key in keys]).decrypt(token.encode()).decode()
    except InvalidToken as error:
        raise SecretUnreadable(purpose) from error


def sealed_prefix() -> str:
    """How every text begins that the current key sealed."""
    return f"{FORM}.{_key_mark(secret_keys()[0])}."


def known_prefixes() -> list[str]:
    """How texts begin that this process can open, the current key first."""
    return [f"{FORM}.{_key_mark(key)}." for key in secret_keys()]


def _read(sealed: str) -> tuple[str, str]:
    """(key id, token). A text of the former form names no key."""
    form, _, rest = sealed.partition(".")
    if form != FORM:
        return "", sealed
    named, _, token = rest.partition(".")
    return named, token


def _key_mark(secret: str) -> str:
    # Eight characters of a hash with a purpose of its own: they tell keys apart and do not help to find one.
    return sha256(f"holdpoint key id\x00{secret}".encode()).hexdigest()[:8]


def _box(purpose: str, secret: str) -> Fernet:
    # A key per purpose: a text that was encrypted for one purpose cannot be put in the place of another.
    return Fernet(urlsafe_b64encode(sha256(f"holdpoint {purpose}\x00{secret}".encode()).digest()))
