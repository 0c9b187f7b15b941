"""Everything that a witness holds, against the stored tree and against its own receipts."""

from dataclasses import dataclass
from typing import Any

from governance.ledger.epoch import epoch_of, kept_of
from governance.merkle import Checkpoint, checkpoint_verify
from governance.merkle.checkpoint import CheckpointInvalid
from governance.models import WitnessReceipt
from governance.selectors.witness import Tree
from governance.services.divergence import PublicKeys, head_judge
from governance.services.verify_range import Faults
from governance.states import WitnessResult
from governance.witnesses import Witness, WitnessFailed


@dataclass(slots=True)
class WitnessChecked:
    name: str
    heads: int = 0
    largest: int = 0
    lost: int = 0
    unsigned: int = 0
    receipts: int = 0
    unreadable: str = ""

    def as_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}

    @property
    def words(self) -> str:
        if self.unreadable:
            return f"{self.name}: cannot be read ({self.unreadable})"
        said = f"{self.name}: {self.heads} heads, the largest of {self.largest} entries"
        return said + (f"; {self.lost} are of what is confirmed as lost" if self.lost else "")


def witness_verify(*, witness: Witness, keys: PublicKeys, faults: Faults) -> WitnessChecked:
    """A witness that cannot be read is a fault too: nobody can say that it holds nothing else."""
    checked, tree = WitnessChecked(witness.name), Tree()
    known = [*tree.keys, *keys]
    held: set[bytes] = set()
    told = WitnessReceipt.objects.filter(witness=witness.name).order_by("-id").first()
    try:
        for text in witness.heads():
            try:
                head = checkpoint_verify(text, keys=known)
            except CheckpointInvalid as error:
                checked.unsigned += 1
                faults.add(f"witness {witness.name}: it holds a head that does not verify: {error}")
                continue
            _judge(checked, head, tree, faults)
            held.add(head.root)
    except WitnessFailed as failure:
        checked.unreadable = failure.code
        faults.add(f"witness {witness.name}: it cannot be read ({failure.code})")
        return checked
    if told is not None:
        _check_receipts(checked, told, held, faults)
    return checked


def _judge(checked: WitnessChecked, head: Checkpoint, tree: Tree, faults: Faults) -> None:
    checked.heads += 1
    checked.largest = max(checked.largest, head.size)
    finding = head_judge(witness=checked.name, head=head, tree=tree)
    if finding is not None:
        faults.add(f"witness {finding.words}")
        return
    kept = kept_of(epoch_of(head), tree.begins)
    checked.lost += kept is not None and head.size > kept


def _check_receipts(checked: WitnessChecked, told: WitnessReceipt, held: set[bytes], faults: Faults) -> None:
    """What the witness had said it stored (`told` is its last word before it was read), it must still have."""
    rows = WitnessReceipt.objects.filter(witness=checked.name, result=WitnessResult.STORED, id__lte=told.id)
    for size, root in rows.order_by("size").values_list("size", "root").iterator(chunk_size=5000):
        checked.receipts += 1
        if bytes(root) not in held:
            faults.add(f"witness {checked.name}: the head of {size} entries that it stored is not there any more")
