"""Reads epochs, deny mode, how far each witness is (from its receipts), and the tree that its heads are compared
with."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from django.db import connection

from governance.sealing.models import LedgerCheckpoint, LedgerEpoch, WitnessReceipt
from governance.sealing.rules.epoch import FIRST, EpochBegin
from governance.sealing.rules.merkle import frontier_root
from governance.sealing.rules.merkle.tree import frontier_nodes
from governance.sealing.selectors.keys import key_public, ledger_keys
from governance.sealing.selectors.tree import checkpoint_latest, nodes_read
from governance.sealing.states import LEDGER_INCONSISTENT, WitnessResult
from governance.shutdown.models import Shutdown
from governance.shutdown.states import ShutdownScope, ShutdownState
from reasoncodes.base.tenancy import every_tenant


def epoch_current() -> int:
    newest = LedgerEpoch.objects.order_by("-number").values_list("number", flat=True).first()
    return newest or FIRST


def epoch_mark() -> str:
    """The mark of the current epoch in lease tokens."""
    # With the time: after a restore, without witnesses, the same number can be given to another epoch, and a lease
    # from before the restore would be accepted.
    row = LedgerEpoch.objects.order_by("-number").first()
    return f"{row.number}.{int(row.begun_at.timestamp())}" if row else str(FIRST)


def epoch_list() -> list[LedgerEpoch]:
    return list(LedgerEpoch.objects.order_by("number"))


def _epoch_begins() -> list[EpochBegin]:
    return [EpochBegin(row.number, row.kept, row.lost_to) for row in epoch_list()]


def ledger_denial() -> Shutdown | None:
    """The shutdown of deny mode, while it is engaged. Its `preview` names the divergent heads."""
    # The shutdown belongs to no organization, and callers may have the scope of one.
    with every_tenant():
        rows = Shutdown.objects.filter(
            scope=ShutdownScope.GLOBAL, state=ShutdownState.ENGAGED, target=LEDGER_INCONSISTENT
        )
        return rows.order_by("id").first()


# Limits of the pause after a failure: a witness that is away is not asked every two seconds, and one that comes back is
# noticed within minutes.
SHORTEST_PAUSE = timedelta(seconds=10)
LONGEST_PAUSE = timedelta(minutes=10)
# Heads that are counted for "behind". Counting on would read more and more while a witness is away.
COUNTED = 10_000
# The largest head that a witness stored in the current epoch. Before it stored one, what it has from earlier epochs
# counts only up to where this epoch began: heads of a lost history would hide that new ones are due. Each part reads
# one row, because this runs every two seconds.
STORED = "SELECT {what} FROM governance_witnessreceipt WHERE witness = %(w)s AND result = 'stored' {more} LIMIT 1"
STANDING = f"""
SELECT coalesce(
    ({STORED.format(what="size", more="AND at >= epoch.begun ORDER BY size DESC")}),
    ({STORED.format(what="least(size, epoch.kept)", more="ORDER BY size DESC")}),
    0), ({STORED.format(what="at", more="ORDER BY size DESC")})
FROM (SELECT coalesce(max(begun_at), '-infinity') AS begun, max(kept) AS kept FROM (
    SELECT begun_at, kept FROM governance_ledgerepoch ORDER BY number DESC LIMIT 1) newest) epoch
"""  # noqa: S608


@dataclass(frozen=True, slots=True)
class WitnessStanding:
    """How far a witness is. `behind` counts the heads that it lacks, up to a limit; `since` is when the oldest of them
    was signed."""

    witness: str
    size: int
    stored_at: datetime | None
    behind: int
    since: datetime | None
    last_result: str
    last_detail: str
    last_at: datetime | None

    def lag(self, *, at: datetime) -> float:
        return max(0.0, (at - self.since).total_seconds()) if self.since else 0.0

    def alarming(self, *, at: datetime, heads: int, seconds: int) -> bool:
        return self.behind > heads or self.lag(at=at) > seconds or self.last_result == WitnessResult.REFUSED


def witness_standing(*, witness: str) -> WitnessStanding:
    with connection.cursor() as cursor:
        cursor.execute(STANDING, {"w": witness})
        size, stored_at = cursor.fetchone()
    waiting = LedgerCheckpoint.objects.filter(size__gt=size)
    oldest = waiting.order_by("size").values_list("at", flat=True).first()
    last = WitnessReceipt.objects.filter(witness=witness).order_by("-id").first()
    return WitnessStanding(
        witness=witness,
        size=size,
        stored_at=stored_at,
        behind=waiting.order_by()[:COUNTED].count() if oldest else 0,
        since=oldest,
        last_result=last.result if last else "",
        last_detail=last.detail if last else "",
        last_at=last.at if last else None,
    )


def stored_size(*, witness: str) -> int:
    """Of the largest head that the witness stored."""
    with connection.cursor() as cursor:
        cursor.execute(STANDING, {"w": witness})
        return int(cursor.fetchone()[0])


def heads_due(*, witness: str, limit: int) -> list[LedgerCheckpoint]:
    """The heads that the witness has not stored, oldest first."""
    size = stored_size(witness=witness)
    return list(LedgerCheckpoint.objects.filter(size__gt=size).order_by("size")[:limit])


def paused_until(*, witness: str) -> datetime | None:
    """The end of the pause after failures, or None. A pause is as long as the failures have lasted, within limits."""
    # From the receipts, not from memory: all workers keep the same pause, also after a restart.
    newest = list(WitnessReceipt.objects.filter(witness=witness).order_by("-id")[:1])
    if not newest or newest[0].result == WitnessResult.STORED:
        return None
    stored = WitnessReceipt.objects.filter(witness=witness, result=WitnessResult.STORED).order_by("-id").first()
    failed = WitnessReceipt.objects.filter(witness=witness, **({"id__gt": stored.id} if stored else {}))
    first = failed.order_by("id").first() or newest[0]
    lasted = newest[0].at - first.at
    return newest[0].at + min(max(lasted, SHORTEST_PAUSE), LONGEST_PAUSE)


class Tree:
    """The stored tree at one moment: size, root, epoch, and the root at any smaller size."""

    size: int
    root: bytes
    epoch: int
    begins: Sequence[EpochBegin]

    def __init__(self) -> None:
        self.refresh()

    def refresh(self) -> None:
        """Read it again. It grows while witnesses are read."""
        latest = checkpoint_latest()
        self.size = latest.size if latest else 0
        self.root = bytes(latest.root) if latest else b""
        self.epoch = epoch_current()
        self.begins = _epoch_begins()

    @cached_property
    def keys(self) -> list[tuple[str, Ed25519PublicKey]]:
        return [(key.name, key_public(key)) for key in ledger_keys()]

    def root_at(self, size: int) -> bytes | None:
        """The root of the first `size` entries; None if nodes are missing."""
        # Mostly a head was signed at this size: one look-up. Otherwise it is put together from stored nodes.
        row = LedgerCheckpoint.objects.filter(size=size).values_list("root", flat=True).first()
        if row is not None:
            return bytes(row)
        try:
            return frontier_root(nodes_read(frontier_nodes(size)))
        except KeyError:
            return None
