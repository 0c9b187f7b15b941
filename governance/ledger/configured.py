"""The sealing key as the settings name it, in one place for every door; see docs/operations.md."""

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from django.conf import settings

from governance.ledger.keys import KeyUnreadable, SealingKey, key_read


def sealing_key() -> SealingKey:
    """From the environment or a file."""
    return key_read(
        name=settings.LEDGER_NAME,
        text=settings.LEDGER_KEY,
        file=str(settings.LEDGER_KEY_FILE),
        create=settings.LEDGER_KEY_CREATE,
    )


def known_keys() -> list[tuple[str, Ed25519PublicKey]]:
    """Beside those in the database: a restored one may not know yet the key that signs today."""
    try:
        key = sealing_key()
    except KeyUnreadable:
        return []
    return [(key.name, key.private.public_key())]
