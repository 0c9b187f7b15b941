"""Sealing in tests. Open transactions of other workers hold it up, so it is repeated until all is in."""

import time

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.db import connection
from django.utils import timezone

from governance.ledger.models import LedgerEntry
from governance.sealing.models import LedgerLeaf
from governance.sealing.rules.signing import SealingKey
from governance.sealing.services.key_change import key_hand_over
from governance.sealing.services.seal import ledger_seal_all
from reasoncodes.base.actors import SYSTEM
from reasoncodes.base.tenancy import every_tenant

KEY = SealingKey("holdpoint.test/ledger", Ed25519PrivateKey.from_private_bytes(bytes(range(32))))


# Entries of transactions that may still be running, as the sealer sees them.
HELD_UP = """
SELECT EXISTS (SELECT 1 FROM governance_ledgerentry WHERE txid >= pg_snapshot_xmin(pg_current_snapshot())::text::bigint)
"""


def settled() -> None:
    """Waits until nothing holds up what was appended: the next sealing takes all of it, or says why not."""
    deadline = time.monotonic() + 60
    while True:
        with connection.cursor() as cursor:
            cursor.execute(HELD_UP)
            if not cursor.fetchone()[0]:
                return
        assert time.monotonic() < deadline, "a transaction of another worker does not come to an end"
        time.sleep(0.05)


def seal_all(key: SealingKey = KEY) -> None:
    deadline = time.monotonic() + 60
    with every_tenant():
        while True:
            ledger_seal_all(at=timezone.now(), key=key)
            if not LedgerEntry.objects.exclude(id__in=LedgerLeaf.objects.values("entry_id")).exists():
                return
            assert time.monotonic() < deadline, "sealing does not come to an end"
            time.sleep(0.05)


def hand_over(old: SealingKey, new: SealingKey) -> None:
    with every_tenant():
        key_hand_over(actor=SYSTEM, at=timezone.now(), new_verifier=new.verifier, old=old, installation=True)
