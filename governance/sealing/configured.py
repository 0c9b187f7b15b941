"""The sealing key and the witnesses, as the settings name them, for every entry point; see docs/operations.md."""

import json
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from governance.sealing.adapters.base import Witness
from governance.sealing.adapters.file import FileWitness
from governance.sealing.adapters.http import HttpWitness
from governance.sealing.adapters.storage import StorageWitness
from governance.sealing.rules.signing import KeyUnreadable, SealingKey, sealing_key_read


def sealing_key() -> SealingKey:
    """The key that signs heads, from the environment or a file."""
    return sealing_key_read(
        name=settings.LEDGER_NAME,
        text=settings.LEDGER_KEY,
        file=str(settings.LEDGER_KEY_FILE),
        create=settings.LEDGER_KEY_CREATE,
    )


def known_keys() -> list[tuple[str, Ed25519PublicKey]]:
    """Public keys in addition to those in the database: a restored database may not know today's key yet."""
    try:
        key = sealing_key()
    # A process that only reads may have no key. Then only the database's keys count.
    except KeyUnreadable:
        return []
    return [(key.name, key.private.public_key())]


def witnesses_configured() -> list[Witness]:
    found = [witness_from(**entry) for entry in witness_entries(settings.LEDGER_WITNESSES)]
    # Receipts and pauses are kept by name: two witnesses of one name would share them.
    if len({one.name for one in found}) != len(found):
        raise ImproperlyConfigured("HOLDPOINT_WITNESSES: two witnesses have the same name.")
    return found


def witness_digests() -> dict[str, str]:
    """Name and SHA-256 of the address of each configured witness: enough to notice a change, without the address."""
    entries = witness_entries(settings.LEDGER_WITNESSES)
    found = zip(witnesses_configured(), entries, strict=True)
    return {witness.name: sha256(entry["url"].encode()).hexdigest() for witness, entry in found}


def witness_entries(text: str) -> list[dict[str, Any]]:
    """For each witness its `url`, and `name` and `token` if given."""
    if not text.strip().startswith("["):
        return [{"url": one.strip()} for one in text.split(",") if one.strip()]
    try:
        entries = json.loads(text)
        return [{"url": one} if isinstance(one, str) else dict(one) for one in entries]
    except (ValueError, TypeError) as error:
        raise ImproperlyConfigured("HOLDPOINT_WITNESSES is neither a list of addresses nor JSON.") from error


def witness_from(*, url: str, name: str = "", token: str = "") -> Witness:
    """`file:///path`, `https://host/path`, or `storage:alias/prefix` with an alias of STORAGES."""
    parts = urlsplit(url)
    if parts.scheme == "file" and parts.path and not parts.netloc:
        return FileWitness(name=name or f"file {Path(parts.path).name}", path=Path(unquote(parts.path)))
    if parts.scheme in {"http", "https"} and parts.hostname:
        return HttpWitness(name=name or parts.hostname, url=url, token=token)
    if parts.scheme == "storage":
        alias, _, prefix = parts.path.partition("/")
        return StorageWitness(name=name or f"storage {parts.path}", alias=alias, prefix=prefix)
    raise ImproperlyConfigured("HOLDPOINT_WITNESSES: an address is file:///path, https://… or storage:alias/prefix.")
