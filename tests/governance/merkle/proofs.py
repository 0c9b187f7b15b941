"""Checking proofs, step by step as RFC 9162 2.1.3.2 and 2.1.4.2 write it. Raises rather than answers no."""

from collections.abc import Sequence

from governance.sealing.rules.merkle.hashing import node_hash


class ProofInvalid(ValueError):
    """The proof does not show what it should; the message says in which way."""


def inclusion_verify(*, leaf: bytes, index: int, size: int, proof: Sequence[bytes], root: bytes) -> None:
    """That `leaf` (a leaf hash) is at `index` of the tree with this size and root."""
    if not 0 <= index < size:
        raise ProofInvalid("the position is outside the tree")
    first, last, found = index, size - 1, leaf
    for sibling in proof:
        if last == 0:
            raise ProofInvalid("the proof is too long")
        if first & 1 or first == last:
            found = node_hash(sibling, found)
            while not first & 1 and first:
                first, last = first >> 1, last >> 1
        else:
            found = node_hash(found, sibling)
        first, last = first >> 1, last >> 1
    if last != 0:
        raise ProofInvalid("the proof is too short")
    if found != root:
        raise ProofInvalid("the proof leads to another root")


def consistency_verify(*, old: int, new: int, old_root: bytes, new_root: bytes, proof: Sequence[bytes]) -> None:
    """That the tree (old, old_root) is the beginning of the tree (new, new_root)."""
    if not 0 < old <= new:
        raise ProofInvalid("the sizes are not in order")
    if old == new:
        if proof or old_root != new_root:
            raise ProofInvalid("two trees of one size must have one root")
        return
    path = list(proof)
    if old & (old - 1) == 0:  # a power of two: the old tree is a node of the new one
        path.insert(0, old_root)
    if not path:
        raise ProofInvalid("the proof is empty")
    _walk(old - 1, new - 1, path, old_root, new_root)


def _walk(first: int, last: int, path: list[bytes], old_root: bytes, new_root: bytes) -> None:
    while first & 1:
        first, last = first >> 1, last >> 1
    found_old = found_new = path[0]
    for sibling in path[1:]:
        if last == 0:
            raise ProofInvalid("the proof is too long")
        if first & 1 or first == last:
            found_old, found_new = node_hash(sibling, found_old), node_hash(sibling, found_new)
            while not first & 1 and first:
                first, last = first >> 1, last >> 1
        else:
            found_new = node_hash(found_new, sibling)
        first, last = first >> 1, last >> 1
    if last != 0:
        raise ProofInvalid("the proof is too short")
    if found_old != old_root:
        raise ProofInvalid("the proof does not lead to the old root")
    if found_new != new_root:
        raise ProofInvalid("the proof does not lead to the new root")
