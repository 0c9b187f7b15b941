"""Reads the history of the sealing keys: who signed which heads, and who was named by whom."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from governance.sealing.models import LedgerCheckpoint, LedgerKey, LedgerKeyHandover
from governance.sealing.rules.handover import Handover
from governance.sealing.rules.merkle import verifier_key


def key_subject(*, key_id: str) -> UUID:
    """The subject of a key's ledger entries."""
    return UUID(bytes=bytes.fromhex(key_id).rjust(16, b"\0"))


def key_public(key: LedgerKey) -> Ed25519PublicKey:
    return Ed25519PublicKey.from_public_bytes(bytes(key.public_key))


def key_verifier(key: LedgerKey) -> str:
    return verifier_key(key.name, key_public(key))


def ledger_keys() -> list[LedgerKey]:
    return list(LedgerKey.objects.order_by("first_used_at"))


def handover_newest() -> LedgerKeyHandover | None:
    return LedgerKeyHandover.objects.order_by("-number").first()


def handover_pending(*, old: str, new: str = "") -> LedgerKeyHandover | None:
    """The newest handover, if it is from this key, which signed the newest head (and to `new`)."""
    # Only the newest: a key that was named and replaced before it signed anything may not seal.
    newest = handover_newest()
    if newest is None or newest.old_key_id != old or (new and newest.new_key != new):
        return None
    return newest


@dataclass(frozen=True, slots=True)
class KeyHistory:
    """A key, the smallest and largest head that it signed (other keys may have signed heads in between), and how it was
    named: `handover` is None for the first key, and for keys from before handovers were recorded."""

    id: str
    verifier: str
    first_size: int | None
    last_size: int | None
    since: LedgerKey | None
    handover: LedgerKeyHandover | None
    state: str

    @property
    def line(self) -> str:
        """The signed handover, as files carry it; empty if the old key did not sign one."""
        return handover_of(self.handover).line if self.handover and self.handover.signature else ""


def ledger_key_history() -> list[KeyHistory]:
    """Every key that signed, oldest first, and the one that is named to be next."""
    head = LedgerCheckpoint.objects.order_by("-size").first()
    current = head.key_id if head else ""
    named = {row.new_key: row for row in LedgerKeyHandover.objects.select_related("old_key").order_by("number")}
    waiting = handover_pending(old=current)
    upcoming = waiting.new_key if waiting else ""
    found = []
    for key in ledger_keys():
        sizes = LedgerCheckpoint.objects.filter(key_id=key.id).values_list("size", flat=True)
        first, last = sizes.order_by("size").first(), sizes.order_by("-size").first()
        state = "current" if key.id == current else "next" if key.id == upcoming else "former"
        found.append(KeyHistory(key.id, key_verifier(key), first, last, key, named.get(key.id), state))
    if waiting is not None and upcoming not in {one.id for one in found}:
        found.append(KeyHistory(waiting.new_key, waiting.new_verifier, None, None, None, waiting, "next"))
    return found


def handover_of(row: LedgerKeyHandover) -> Handover:
    return Handover(key_verifier(row.old_key), row.new_verifier, row.size, bytes(row.signature))


def handovers_to(*, key_id: str, size: int) -> list[Handover]:
    """The signed handovers that lead to this key, the newest first, as far as they are without a gap."""
    # Only those that were made before the head of this size: what is built again later must be the same.
    rows: Sequence[LedgerKeyHandover] = list(
        LedgerKeyHandover.objects.select_related("old_key").filter(size__lte=size).order_by("-number")
    )
    found: list[Handover] = []
    wanted = key_id
    for row in rows:
        if row.new_key == wanted and row.signature:
            found.append(handover_of(row))
            wanted = row.old_key_id
    return found


def keys_published() -> tuple[list[str], list[str]]:
    """The verifier keys of this ledger, and the signed handovers between them, oldest first."""
    known = ledger_key_history()
    return [one.verifier for one in known], [one.line for one in known if one.line]


def keys_text() -> str:
    """The same as lines, as the verifier takes them; empty before the first head is signed."""
    keys, handovers = keys_published()
    return "\n".join([*keys, *handovers])
