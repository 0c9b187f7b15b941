"""Names the key that seals next. Sealing goes on meanwhile: with the old key until the first head of the new one, and
with the old one never again after that."""

from datetime import datetime

from django.db import connection, transaction

from governance.ledger.services import ledger_append
from governance.sealing.errors import KeyChangeRefused
from governance.sealing.models import LedgerCheckpoint, LedgerKeyHandover
from governance.sealing.rules.handover import Handover, HandoverInvalid, handover_text, handover_verify
from governance.sealing.rules.merkle.checkpoint import CheckpointInvalid, key_id, verifier_key_read
from governance.sealing.rules.signing import SealingKey
from governance.sealing.selectors.keys import handover_newest, handover_pending, key_subject, key_verifier
from governance.sealing.services.seal import LOCK as SEALER
from reasoncodes.base.actors import Actor
from reasoncodes.base.errors import ScopeMissing


def handover_prepare(*, new_verifier: str) -> tuple[str, int]:
    """(the verifier key that signs now, the size of its newest head): what a handover to `new_verifier` must say."""
    head = _head()
    _checked_name(new_verifier, name=head.key.name)
    return key_verifier(head.key), head.size


def key_hand_over(
    *,
    actor: Actor,
    at: datetime,
    new_verifier: str,
    old: SealingKey | None = None,
    handover: Handover | None = None,
    instead: bool = False,
    installation: bool = False,
) -> LedgerKeyHandover:
    """Record which key seals next. Either `old`, the key that signs now, signs that here, or `handover` was signed
    elsewhere; without both, the change is recorded as not signed. `instead`: replaces a handover whose key has signed
    nothing yet. `installation`: the entry point has checked that the actor administers the installation."""
    if not installation:
        raise ScopeMissing("Only an administrator of the installation changes the sealing key.")
    with transaction.atomic():
        # The sealer's own lock: no head is signed while the chain changes, and of two changes one sees the other.
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [SEALER])
        head = _head()
        new = _checked_name(new_verifier, name=head.key.name)
        if new == head.key_id:
            raise KeyChangeRefused("This key signs already.")
        if handover_pending(old=head.key_id) is not None and not instead:
            raise KeyChangeRefused("Another key is named already and has signed nothing yet.")
        signed = _signed(head, new_verifier, old, handover)
        before = handover_newest()
        row = LedgerKeyHandover(
            number=before.number + 1 if before else 1,
            old_key=head.key,
            new_key=new,
            new_verifier=new_verifier,
            size=signed.size if signed else head.size,
            signature=signed.signature if signed else b"",
            at=at,
        )
        row.save(force_insert=True)
        _record(row, actor=actor, at=at)
    return row


def _head() -> LedgerCheckpoint:
    head = LedgerCheckpoint.objects.select_related("key").order_by("-size").first()
    if head is None:
        raise KeyChangeRefused("Nothing is sealed yet: put the key in place, and the first sealing takes it.")
    return head


def _checked_name(verifier: str, *, name: str) -> str:
    """The id of a verifier key of this ledger."""
    try:
        found, key = verifier_key_read(verifier)
    except CheckpointInvalid as error:
        raise KeyChangeRefused("The new key is not a verifier key (name+id+base64).") from error
    if found != name:
        raise KeyChangeRefused("The new key is of another ledger: its name differs.")
    return key_id(found, key).hex()


def _signed(
    head: LedgerCheckpoint, new_verifier: str, old: SealingKey | None, handover: Handover | None
) -> Handover | None:
    if old is not None:
        if old.id != head.key_id:
            raise KeyChangeRefused("The key that is configured here did not sign the newest head.")
        text = handover_text(old=old.verifier, new=new_verifier, size=head.size)
        return Handover(old.verifier, new_verifier, head.size, old.sign_text(text))
    if handover is None:
        return None
    try:
        before, _ = handover_verify(handover)
    except HandoverInvalid as error:
        raise KeyChangeRefused(f"The handover is not valid: {error}.") from error
    if before != head.key_id or handover.new != new_verifier or handover.size > head.size:
        raise KeyChangeRefused("The handover is of other keys, or of a longer record.")
    return handover


def _record(row: LedgerKeyHandover, *, actor: Actor, at: datetime) -> None:
    ledger_append(
        action="ledger.key_handed_over",
        organization_id=None,
        subject_type="ledger_key",
        subject_id=key_subject(key_id=row.new_key),
        actor=actor,
        at=at,
        payload={
            "key": row.new_key,
            "verifier_key": row.new_verifier,
            "replaces": row.old_key_id,
            "size": row.size,
            "signature": bytes(row.signature).hex(),
        },
    )
