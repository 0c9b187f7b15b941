"""Epochs in signed heads: from the second epoch on, a line in the checkpoint's body. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from governance.sealing.rules.merkle import Checkpoint

FIRST = 1
WORD = "epoch "


@dataclass(frozen=True, slots=True)
class EpochBegin:
    """Where an epoch began: `kept` entries of the epoch before stayed, and its heads went up to `lost_to`."""

    number: int
    kept: int
    lost_to: int


def epoch_lines(epoch: int) -> tuple[str, ...]:
    """The extension lines of a head. None in the first epoch, so that its heads are plain checkpoints."""
    return (f"{WORD}{epoch}",) if epoch > FIRST else ()


def epoch_of(checkpoint: Checkpoint) -> int:
    """The epoch that a head names."""
    # A number that cannot be read is not ours: 0 belongs to no epoch, so the head counts as divergent.
    for line in checkpoint.extensions:
        if line.startswith(WORD):
            number = line.removeprefix(WORD)
            return int(number) if number.isascii() and number.isdigit() and len(number) < 10 else 0
    return FIRST


def kept_of(epoch: int, begins: Sequence[EpochBegin]) -> int | None:
    """How many entries of an ended epoch's tree are still there; None for the current epoch."""
    return min((one.kept for one in begins if one.number > epoch), default=None)


def confirmed_loss(epoch: int, begins: Sequence[EpochBegin]) -> int:
    """The size up to which a person confirmed the loss of heads of this epoch."""
    return max((one.lost_to for one in begins if one.number > epoch), default=0)
