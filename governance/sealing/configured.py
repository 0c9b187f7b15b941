"""The sealing key and the witnesses, as the settings name them, for every entry point; see docs/operations.md."""

import json
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from governance.sealing.adapters.base import Cosigner, Witness
from governance.sealing.adapters.cosign import CosignWitness
from governance.sealing.adapters.file import FileWitness
from governance.sealing.adapters.http import HttpWitness
from governance.sealing.adapters.signer_socket import SocketSigner
from governance.sealing.adapters.signer_token import TokenSigner, pin_read
from governance.sealing.adapters.storage import StorageWitness
from governance.sealing.rules.merkle.checkpoint import CheckpointInvalid
from governance.sealing.rules.signing import HeadSigner, SealingKey, SealingStopped, Signer, sealing_key_read


def sealing_key() -> SealingKey:
    """The key that signs heads: in a signer outside, or from the environment or a file."""
    if settings.LEDGER_SIGNER:
        return SealingKey(settings.LEDGER_NAME, signer_from(settings.LEDGER_SIGNER, name=settings.LEDGER_NAME))
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
        return [(key.name, key.public)]
    # A process that only reads may have no key, and a signer may be away. Then only the database's keys count.
    except SealingStopped:
        return []


@cache
def signer_from(address: str, *, name: str) -> Signer | HeadSigner:
    """`unix:/path` of a signer's socket, or `pkcs11:token=…;object=…?module-path=…&pin-source=…` (RFC 7512)."""
    # Kept, because it remembers the public key: the check of every 30 seconds need not open the token.
    kind, _, rest = address.partition(":")
    if kind == "unix" and rest.startswith("/"):
        return SocketSigner(path=rest, name=name)
    path, _, query = rest.partition("?")
    facts = {key: unquote(value) for key, _, value in (part.partition("=") for part in path.split(";"))}
    more = {key: unquote(value) for key, _, value in (part.partition("=") for part in query.split("&"))}
    if kind != "pkcs11" or not all((facts.get("token"), facts.get("object"), more.get("module-path"))):
        raise ImproperlyConfigured(
            "HOLDPOINT_LEDGER_SIGNER is unix:/path, or pkcs11:token=…;object=…?module-path=…&pin-source=…"
        )
    pin = pin_read(value=more.get("pin-value", ""), source=more.get("pin-source", ""))
    return TokenSigner(module=more["module-path"], token=facts["token"], label=facts["object"], pin=pin)


def witnesses_configured() -> list[Witness]:
    found = [witness_from(**entry) for entry in witness_entries(settings.LEDGER_WITNESSES)]
    # Receipts and pauses are kept by name: two witnesses of one name would share them.
    if len({one.name for one in found}) != len(found):
        raise ImproperlyConfigured("HOLDPOINT_WITNESSES: two witnesses have the same name.")
    return found


def cosigners_configured() -> list[Cosigner]:
    return [one for one in witnesses_configured() if isinstance(one, Cosigner)]


def witness_quorum() -> int:
    """How many witnesses must have cosigned a head. 0 if none of them cosigns."""
    count, wanted = len(cosigners_configured()), settings.WITNESS_QUORUM
    if wanted > count and (count or wanted > 1):
        raise ImproperlyConfigured("HOLDPOINT_WITNESS_QUORUM is larger than the number of witnesses that cosign.")
    return wanted if count else 0


def witness_digests() -> dict[str, str]:
    """Name and SHA-256 of the address of each configured witness: enough to notice a change, without the address. For
    one that cosigns also of its key, and the quorum as an entry of its own."""
    entries = witness_entries(settings.LEDGER_WITNESSES)
    found = {}
    for witness, entry in zip(witnesses_configured(), entries, strict=True):
        parts = [entry["url"], *([entry["verifier_key"]] if isinstance(witness, Cosigner) else [])]
        found[witness.name] = sha256("\n".join(parts).encode()).hexdigest()
    # A smaller quorum is as much a change as a witness less. Its name says it to the two people who confirm.
    if quorum := witness_quorum():
        words = f"quorum {quorum} of {len(cosigners_configured())}"
        found[words] = sha256(words.encode()).hexdigest()
    return found


def witness_entries(text: str) -> list[dict[str, Any]]:
    """For each witness its `url`, and `name`, `token`, `kind` and `verifier_key` if given."""
    if not text.strip().startswith("["):
        return [{"url": one.strip()} for one in text.split(",") if one.strip()]
    try:
        entries = json.loads(text)
        return [{"url": one} if isinstance(one, str) else dict(one) for one in entries]
    except (ValueError, TypeError) as error:
        raise ImproperlyConfigured("HOLDPOINT_WITNESSES is neither a list of addresses nor JSON.") from error


def witness_from(*, url: str, name: str = "", token: str = "", kind: str = "", verifier_key: str = "") -> Witness:
    """`file:///path`, `https://host/path`, or `storage:alias/prefix` with an alias of STORAGES. With the kind `cosign`
    the address is the submission prefix of a C2SP witness, and `verifier_key` is its key."""
    parts = urlsplit(url)
    if name.startswith("quorum ") or kind not in {"", "cosign"} or bool(kind) != bool(verifier_key):
        raise ImproperlyConfigured("HOLDPOINT_WITNESSES: a witness of the kind cosign has a verifier_key, others none.")
    if kind:
        return _cosign_witness(url=url, name=name, token=token, verifier_key=verifier_key)
    if parts.scheme == "file" and parts.path and not parts.netloc:
        return FileWitness(name=name or f"file {Path(parts.path).name}", path=Path(unquote(parts.path)))
    if parts.scheme in {"http", "https"} and parts.hostname:
        return HttpWitness(name=name or parts.hostname, url=url, token=token)
    if parts.scheme == "storage":
        alias, _, prefix = parts.path.partition("/")
        return StorageWitness(name=name or f"storage {parts.path}", alias=alias, prefix=prefix)
    raise ImproperlyConfigured("HOLDPOINT_WITNESSES: an address is file:///path, https://… or storage:alias/prefix.")


def _cosign_witness(*, url: str, name: str, token: str, verifier_key: str) -> CosignWitness:
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ImproperlyConfigured("HOLDPOINT_WITNESSES: a witness of the kind cosign has an address http(s)://…")
    try:
        return CosignWitness(
            name=name or parts.hostname, url=url, token=token, verifier_key=verifier_key, origin=settings.LEDGER_NAME
        )
    except CheckpointInvalid as error:
        raise ImproperlyConfigured("HOLDPOINT_WITNESSES: verifier_key is not the key of a C2SP witness.") from error
