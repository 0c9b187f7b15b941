"""An endpoint's secrets: made of SECRET_KEY and a salt, so that the database alone signs nothing."""

from collections.abc import Iterable
from secrets import token_bytes
from uuid import UUID

from attempts.adapters.signature import derived_keys, secret_text

PURPOSE = "holdpoint.webhook.v1"
SALT_BYTES = 32


def new_salt() -> bytes:
    return token_bytes(SALT_BYTES)


def secret_of(endpoint_id: UUID, salt: bytes) -> str:
    """The clear text, for the one answer that shows it."""
    return secret_text(_keys(endpoint_id, salt)[0])


def keys_of(endpoint_id: UUID, salts: Iterable[bytes]) -> list[bytes]:
    """Everything that signs now, the newest secret first."""
    return [key for salt in salts for key in _keys(endpoint_id, salt)]


def _keys(endpoint_id: UUID, salt: bytes) -> list[bytes]:
    return derived_keys(f"{PURPOSE}:{endpoint_id}:{bytes(salt).hex()}")
