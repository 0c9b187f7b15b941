"""Reads the cosignatures of heads, checked again against the pinned keys, and whether enough witnesses cosigned."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from governance.sealing.adapters.base import Cosigner
from governance.sealing.models import LedgerCheckpoint, WitnessReceipt
from governance.sealing.rules.merkle.checkpoint import CheckpointInvalid
from governance.sealing.rules.merkle.cosignature import cosignature_find
from governance.sealing.selectors.witnesses import stored_size
from governance.sealing.states import WitnessResult


@dataclass(frozen=True, slots=True)
class Quorum:
    """`wanted` of `known` witnesses. `size` is of the newest head that so many cosigned; `since` is when the oldest
    head beyond it was signed."""

    wanted: int
    known: int
    size: int
    since: datetime | None

    def lag(self, *, at: datetime) -> float:
        return max(0.0, (at - self.since).total_seconds()) if self.since else 0.0

    def missing(self, *, at: datetime, seconds: int) -> bool:
        return self.lag(at=at) > seconds


def quorum_standing(*, cosigners: Sequence[Cosigner], wanted: int) -> Quorum | None:
    """None if no witness cosigns."""
    if not wanted:
        return None
    # A witness cosigns heads in order, each as the continuation of the one before: its newest cosignature covers all.
    sizes = sorted((_cosigned_size(one) for one in cosigners), reverse=True)
    size = sizes[wanted - 1]
    oldest = LedgerCheckpoint.objects.filter(size__gt=size).order_by("size").values_list("at", flat=True).first()
    return Quorum(wanted=wanted, known=len(sizes), size=size, since=oldest)


def _cosigned_size(cosigner: Cosigner) -> int:
    """Of the newest head that it cosigned, 0 if there is none or if its key did not sign what the receipt has."""
    # Not above what it has in this epoch: a cosignature of a history that was lost covers nothing of this one.
    most = stored_size(witness=cosigner.name)
    rows = WitnessReceipt.objects.filter(witness=cosigner.name, result=WitnessResult.STORED, size__lte=most)
    size = rows.order_by("-size").values_list("size", flat=True).first() or 0
    heads = list(LedgerCheckpoint.objects.filter(size=size))
    return size if cosignatures_of(heads=heads, cosigners=[cosigner]) else 0


def cosignatures_of(
    *, heads: Sequence[LedgerCheckpoint], cosigners: Sequence[Cosigner]
) -> dict[int, list[tuple[str, str]]]:
    """By size: name and line of each witness whose pinned key cosigned this head, in the order of the configuration."""
    texts: Mapping[int, str] = {head.size: head.text for head in heads}
    if not texts or not cosigners:
        return {}
    rows = WitnessReceipt.objects.filter(size__in=list(texts), result=WitnessResult.STORED).exclude(cosignature="")
    lines = {
        (row.witness, row.size): row.cosignature for row in rows.filter(witness__in=[one.name for one in cosigners])
    }
    found: dict[int, list[tuple[str, str]]] = {}
    for size, text in texts.items():
        for cosigner in cosigners:
            line = lines.get((cosigner.name, size))
            if line is not None and cosignature_fits(text, line, cosigner=cosigner):
                found.setdefault(size, []).append((cosigner.name, line))
    return found


def cosignature_fits(text: str, line: str, *, cosigner: Cosigner) -> bool:
    """Checked whenever it is read: rows can be changed by who owns the tables."""
    try:
        return cosignature_find(f"{text}{line}\n", key=cosigner.key) == line
    except CheckpointInvalid:
        return False
