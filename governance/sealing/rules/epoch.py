"""The epoch in signed heads: a line of the checkpoint's body from the second epoch on. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from governance.sealing.rules.merkle import Checkpoint

FIRST = 1
WORD = "epoch "


@dataclass(frozen=True, slots=True)
class EpochBegin:
    """Where an epoch began: of the one before `kept` entries stayed, and its heads went up to `lost_to`."""

    number: int
    kept: int
    lost_to: int


def epoch_lines(epoch: int) -> tuple[str, ...]:
    """The first epoch has none: its heads look as they did before there were epochs."""
    return (f"{WORD}{epoch}",) if epoch > FIRST else ()


def epoch_of(checkpoint: Checkpoint) -> int:
    """What the head says. A number that cannot be read is none of ours: 0, which fits no epoch."""
    for line in checkpoint.extensions:
        if line.startswith(WORD):
            number = line.removeprefix(WORD)
            return int(number) if number.isascii() and number.isdigit() and len(number) < 10 else 0
    return FIRST


def kept_of(epoch: int, begins: Sequence[EpochBegin]) -> int | None:
    """How many entries of an ended epoch's tree are still there; None while it lasts."""
    return min((one.kept for one in begins if one.number > epoch), default=None)


def confirmed_loss(epoch: int, begins: Sequence[EpochBegin]) -> int:
    """Up to which size a person confirmed that heads of this epoch were signed over what is gone."""
    return max((one.lost_to for one in begins if one.number > epoch), default=0)
