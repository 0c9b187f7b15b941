"""Checks the chain of sealing keys: every change from one head's key to the next head's key must be in the ledger, and
each handover must be signed by the key that it replaces."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from governance.ledger.models import LedgerEntry
from governance.sealing.models import LedgerKeyHandover
from governance.sealing.rules.handover import HandoverInvalid, handover_verify
from governance.sealing.selectors.keys import handover_of, key_subject, key_verifier, ledger_keys
from governance.sealing.services.verify_range import Faults, SignedHead

ACTIONS = ("ledger.key_adopted", "ledger.key_handed_over")


@dataclass(slots=True)
class KeyChain:
    """`named` holds what the ledger says: (the key before, the key after). `before` is the key of the last head."""

    named: set[tuple[str, str]] = field(default_factory=set)
    wrong: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    before: str = ""

    def follow(self, heads: Iterable[SignedHead], faults: Faults) -> None:
        """Heads must come in order."""
        for head in heads:
            if head.key != self.before and (self.before, head.key) not in self.named:
                said = f"in place of {self.before}" if self.before else "as the first one"
                faults.add(f"head of {head.size} entries: the ledger does not name the key {head.key} {said}")
            self.before = head.key

    def end(self, faults: Faults) -> None:
        for text in self.wrong:
            faults.add(text)


def key_chain_verify() -> KeyChain:
    """What the ledger says about the keys, and faults of the handovers."""
    chain = KeyChain()
    verifiers = {key.id: key_verifier(key) for key in ledger_keys()}
    for id_, verifier in verifiers.items():
        chain.named |= _named(id_, verifier)
    for row in LedgerKeyHandover.objects.select_related("old_key").order_by("number"):
        _check_handover(row, chain)
    return chain


def _named(key_id: str, verifier: str) -> set[tuple[str, str]]:
    """By which keys the ledger says this one was preceded. Entries that name another public half do not count."""
    rows = LedgerEntry.objects.filter(subject_id=key_subject(key_id=key_id), subject_type="ledger_key")
    payloads = [row.payload for row in rows.filter(action__in=ACTIONS) if row.payload is not None]
    return {(one["replaces"], key_id) for one in payloads if one.get("verifier_key") == verifier}


def _check_handover(row: LedgerKeyHandover, chain: KeyChain) -> None:
    told = f"handover of the sealing key from {row.old_key_id} to {row.new_key}"
    entries = LedgerEntry.objects.filter(
        subject_id=key_subject(key_id=row.new_key), action="ledger.key_handed_over", at=row.at
    )
    facts = {"replaces": row.old_key_id, "verifier_key": row.new_verifier, "signature": bytes(row.signature).hex()}
    if not any(facts.items() <= entry.payload.items() for entry in entries if entry.payload is not None):
        chain.wrong.append(f"{told}: it is not in the ledger as it stands in its table")
    if not row.signature:
        chain.notes.append(f"{told}: it is not signed by the old key, which was lost")
        return
    try:
        if handover_verify(handover_of(row)) != (row.old_key_id, row.new_key):
            chain.wrong.append(f"{told}: it is signed for other keys")
    except HandoverInvalid as error:
        chain.wrong.append(f"{told}: {error}")
