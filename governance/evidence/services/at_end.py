"""Evidence by itself: a bundle when an attempt or a run ends, where its contract says so.

The end itself is not slower: after its commit a wake-up is sent, and a worker requests the bundle. A scheduled task
finds ends whose wake-up was lost, `evidence_backfill` the older ones. All three ask the same question first: is there a
bundle already?"""

import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from uuid import UUID

import structlog
from django.db import DatabaseError, transaction

from governance.contracts.models import Contract
from governance.enforcement.models import SnapshotBroken, snapshot_load
from governance.evidence.hooks import EndedSubject, collector_for
from governance.evidence.rules.when import wanted_at_end
from governance.evidence.selectors import bundle_newest
from governance.evidence.services.request import evidence_request
from governance.evidence.states import EvidenceKind
from governance.outside.wake_up import wake_up
from reasoncodes.base.actors import SYSTEM
from reasoncodes.base.errors import NotFound
from reasoncodes.base.tenancy import every_tenant

AT_END_TASK = "governance.tasks.evidence_at_end"
# The scheduled task looks at what ended in this time. Older ones, after a longer outage, are for the backfill.
LOOKS_BACK = timedelta(hours=2)
# The wake-up has this long before the scheduled task does its work.
LEAVES = timedelta(seconds=60)
BATCH = 200
# Seconds for which a process remembers what a contract says. A contract that changes is believed a minute later.
REMEMBERS = 60.0
_known: dict[tuple[UUID, str, str], tuple[float, bool]] = {}
log = structlog.get_logger("holdpoint.evidence")


def evidence_when_ended(*, kind: EvidenceKind, subject_id: UUID, contract_id: UUID | None, risk_tier: str) -> None:
    """Call it in the transaction that ends an attempt or a run. It does nothing before the commit."""

    def tell() -> None:
        try:
            wanted = contract_id is not None and _wants(contract_id, kind, risk_tier)
        # The end is committed: what cannot be read now must not turn it into an error. The scheduled task looks again.
        except (DatabaseError, SnapshotBroken) as error:
            log.warning("evidence_setting_unread", subject=str(subject_id), error=type(error).__name__)
            return
        if wanted:
            wake_up(AT_END_TASK, subject_id)

    transaction.on_commit(tell)


def _wants(contract_id: UUID, kind: str, risk_tier: str) -> bool:
    # Remembered, because almost every end asks the same: a query per end would slow down the ends that want nothing.
    key, now = (contract_id, str(kind), risk_tier), time.monotonic()
    until, wanted = _known.get(key, (0.0, False))
    if until > now:
        return wanted
    with every_tenant():
        sha256 = Contract.objects.filter(id=contract_id).values_list("snapshot_sha256", flat=True).first()
    wanted = bool(sha256) and wanted_at_end(snapshot_load(sha256)["documents"], kind=kind, risk_tier=risk_tier)
    if len(_known) > 4096:  # a process that lives for months must not remember every contract there was
        _known.clear()
    _known[key] = (now + REMEMBERS, wanted)
    return wanted


def evidence_at_end(*, subject_id: UUID, at: datetime) -> bool:
    """Request the bundle of one ended attempt or run, unless it has one. Safe twice and late; True if it is new."""
    for kind in EvidenceKind:
        try:
            ended = collector_for(kind).ended(subject_id=subject_id)
        except NotFound:
            continue
        return ended is not None and _request(kind, ended, at)
    return False


def _request(kind: EvidenceKind, ended: EndedSubject, at: datetime) -> bool:
    if ended.contract_id is None or not _wants(ended.contract_id, kind, ended.risk_tier):
        return False
    if bundle_newest(kind=kind, subject_id=ended.id) is not None:
        return False
    return evidence_request(kind=kind, subject_id=ended.id, actor=SYSTEM, at=at)[1]


def evidence_sweep(*, at: datetime) -> int:
    """Request bundles for recent ends whose wake-up was lost. Returns how many."""
    window = (at - LOOKS_BACK, at - LEAVES)
    return sum(
        _request(kind, ended, at)
        for kind in EvidenceKind
        for ended in collector_for(kind).ended_without(between=window, contracts=contracts_asking(kind), limit=BATCH)
    )


def contracts_asking(kind: EvidenceKind) -> list[UUID]:
    """The contracts of which some attempts or runs get a bundle at their end."""
    found = []
    for id_, sha256, risk_tier in Contract.objects.exclude(snapshot_sha256="").values_list(
        "id", "snapshot_sha256", "risk_tier"
    ):
        try:
            documents = snapshot_load(sha256)["documents"]
        except SnapshotBroken:  # `verify_record` names it; the others still get their bundles
            continue
        # An attempt can have a higher risk than its contract, so without a word in the contract each is looked at.
        said = documents.get("durable_attempt_store", {}).get("evidence")
        if said is None or wanted_at_end(documents, kind=kind, risk_tier=risk_tier):
            found.append(id_)
    return found


def evidence_backfill(*, at: datetime, limit: int) -> Iterator[tuple[int, int]]:
    """Request missing bundles, oldest first: yields how many ends were looked at and how many bundles requested so far.
    Ends with a bundle are passed over by the query, so that a run which was stopped goes on where it was."""
    looked = made = 0
    for kind in EvidenceKind:
        contracts, after = contracts_asking(kind), UUID(int=0)
        while made < limit:
            between = (datetime.min.replace(tzinfo=at.tzinfo), at)
            rows = collector_for(kind).ended_without(
                between=between, contracts=contracts, limit=min(BATCH, limit - made), after=after
            )
            if not rows:
                break
            for ended in rows:
                looked, after = looked + 1, ended.id
                made += _request(kind, ended, at)
            yield looked, made
