"""The Merkle tree over stored nodes: how it grows, its root, and the nodes of a proof.

Only complete subtrees are stored, by level (0 = leaves) and index: such a node does not change when the tree grows. All
other nodes are computed from these when they are needed.
"""

from collections.abc import Callable, Sequence

from governance.sealing.rules.merkle.hashing import EMPTY_ROOT, node_hash

Node = tuple[int, int]
Read = Callable[[Sequence[Node]], Sequence[bytes]]


def extend(
    *, size: int, frontier: Sequence[bytes], leaves: Sequence[bytes]
) -> tuple[list[tuple[Node, bytes]], list[bytes]]:
    """The nodes that `leaves` complete, and the new frontier: the roots of the tree's complete subtrees, largest first
    (one for each 1 bit of its size)."""
    # The frontier is all that growing needs: sealing does not read the tree, however large it is.
    stack = list(frontier)
    made: list[tuple[Node, bytes]] = []
    for position, leaf in enumerate(leaves, start=size):
        made.append(((0, position), leaf))
        stack.append(leaf)
        level, index = 0, position
        # A right child completes its parent; each trailing 1 bit of the position is one more level.
        while index & 1:
            right, left = stack.pop(), stack.pop()
            level, index = level + 1, index >> 1
            stack.append(node_hash(left, right))
            made.append(((level, index), stack[-1]))
    return made, stack


def frontier_root(frontier: Sequence[bytes]) -> bytes:
    """The root of the tree that has these complete subtrees."""
    if not frontier:
        return EMPTY_ROOT
    root = frontier[-1]
    for left in reversed(frontier[:-1]):
        root = node_hash(left, root)
    return root


def frontier_nodes(size: int, *, start: int = 0) -> list[Node]:
    """The largest stored nodes that cover the leaves from `start` to `size`, left to right."""
    nodes = []
    while start < size:
        level = (start & -start).bit_length() - 1 if start else size.bit_length() - 1
        while start + (1 << level) > size:
            level -= 1
        nodes.append((level, start >> level))
        start += 1 << level
    return nodes


def inclusion_nodes(index: int, size: int) -> list[list[Node]]:
    """The audit path, lowest first. A sibling that is not a complete subtree is given by its parts."""
    return [frontier_nodes(end, start=start) for start, end in _siblings(index, 0, size)]


def inclusion_proof(*, index: int, size: int, read: Read) -> list[bytes]:
    if not 0 <= index < size:
        raise ValueError("the leaf is not in a tree of this size")
    return _joined(inclusion_nodes(index, size), read)


def consistency_proof(*, old: int, new: int, read: Read) -> list[bytes]:
    """Proof that the tree of size `old` is the beginning of the tree of size `new`."""
    if not 0 < old <= new:
        raise ValueError("the old size must be positive and not larger than the new one")
    if old == new:
        return []
    ranges = _consistency(old, 0, new, complete=True)
    return _joined([frontier_nodes(end, start=start) for start, end in ranges], read)


def _joined(groups: list[list[Node]], read: Read) -> list[bytes]:
    """The hash of each group of nodes. All nodes are read at once: one round trip per proof."""
    hashes = iter(read([node for group in groups for node in group]))
    return [frontier_root([next(hashes) for _ in group]) for group in groups]


def _split(width: int) -> int:
    """The largest power of two that is smaller than the width."""
    return 1 << (width - 1).bit_length() - 1


def _siblings(index: int, start: int, end: int) -> list[tuple[int, int]]:
    path: list[tuple[int, int]] = []
    while end - start > 1:
        middle = start + _split(end - start)
        if index < middle:
            path.append((middle, end))
            end = middle
        else:
            path.append((start, middle))
            start = middle
    return path[::-1]


def _consistency(old: int, start: int, end: int, *, complete: bool) -> list[tuple[int, int]]:
    """RFC 9162 2.1.4.1 SUBPROOF: `complete` while the old tree is a whole subtree of what is left."""
    path: list[tuple[int, int]] = []
    while old != end:
        middle = start + _split(end - start)
        if old <= middle:
            path.append((middle, end))
            end = middle
        else:
            path.append((start, middle))
            start, complete = middle, False
    return ([] if complete else [(start, end)]) + path[::-1]
