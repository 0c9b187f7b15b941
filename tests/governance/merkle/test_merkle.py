"""The tree against the published test vectors of RFC 6962 and against the definition itself; proofs; checkpoints."""

from base64 import b64encode
from hashlib import sha256

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import example, given
from hypothesis import strategies as st

from governance.sealing.rules.merkle import (
    EMPTY_ROOT,
    Checkpoint,
    checkpoint_sign,
    checkpoint_verify,
    consistency_proof,
    extend,
    frontier_root,
    inclusion_proof,
    leaf_hash,
    node_hash,
    verifier_key,
)
from governance.sealing.rules.merkle.checkpoint import CheckpointInvalid, verifier_key_read
from governance.sealing.rules.merkle.tree import frontier_nodes
from tests.governance.merkle.proofs import ProofInvalid, consistency_verify, inclusion_verify

pytestmark = pytest.mark.unit

# The eight leaves, the roots of their trees, and the proofs that implementations of RFC 6962 test themselves with.
LEAVES = [
    bytes.fromhex(text)
    for text in (
        "",
        "00",
        "10",
        "2021",
        "3031",
        "40414243",
        "5051525354555657",
        "606162636465666768696a6b6c6d6e6f",
    )
]
ROOTS = [
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]
INCLUSION = {
    (0, 1): [],
    (0, 8): [
        "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
        "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
        "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
    ],
    (5, 8): [
        "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
        "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    ],
    (2, 3): ["fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125"],
    (1, 5): [
        "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
        "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
        "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
    ],
}
CONSISTENCY = {
    (1, 1): [],
    (1, 8): [
        "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
        "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
        "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
    ],
    (6, 8): [
        "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a",
        "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    ],
    (2, 5): [
        "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
        "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
    ],
}


class Stored:
    """What the sealer stores, in a dictionary."""

    def __init__(self, leaves: list[bytes]) -> None:
        nodes, self.frontier = extend(size=0, frontier=[], leaves=[leaf_hash(leaf) for leaf in leaves])
        self.nodes = dict(nodes)

    def read(self, wanted: list[tuple[int, int]]) -> list[bytes]:
        return [self.nodes[node] for node in wanted]

    def root(self, size: int) -> bytes:
        return frontier_root(self.read(frontier_nodes(size)))


def defined_root(leaves: list[bytes]) -> bytes:
    """RFC 9162 2.1.1, word for word."""
    if not leaves:
        return sha256(b"").digest()
    if len(leaves) == 1:
        return sha256(b"\x00" + leaves[0]).digest()
    k = 1
    while k * 2 < len(leaves):
        k *= 2
    return node_hash(defined_root(leaves[:k]), defined_root(leaves[k:]))


def test_the_published_roots_come_out() -> None:
    assert frontier_root([]) == EMPTY_ROOT
    assert EMPTY_ROOT.hex() == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert [Stored(LEAVES[:size]).root(size).hex() for size in range(1, 9)] == ROOTS


@pytest.mark.parametrize(("index", "size"), INCLUSION)
def test_the_published_inclusion_proofs_come_out_and_verify(index: int, size: int) -> None:
    proof = inclusion_proof(index=index, size=size, read=Stored(LEAVES).read)
    assert [one.hex() for one in proof] == INCLUSION[index, size]
    root = bytes.fromhex(ROOTS[size - 1])
    inclusion_verify(leaf=leaf_hash(LEAVES[index]), index=index, size=size, proof=proof, root=root)


@pytest.mark.parametrize(("old", "new"), CONSISTENCY)
def test_the_published_consistency_proofs_come_out_and_verify(old: int, new: int) -> None:
    proof = consistency_proof(old=old, new=new, read=Stored(LEAVES).read)
    assert [one.hex() for one in proof] == CONSISTENCY[old, new]
    roots = bytes.fromhex(ROOTS[old - 1]), bytes.fromhex(ROOTS[new - 1])
    consistency_verify(old=old, new=new, old_root=roots[0], new_root=roots[1], proof=proof)


@given(st.lists(st.binary(max_size=40), min_size=1, max_size=70), st.data())
def test_growing_in_any_batches_gives_the_defined_tree(leaves: list[bytes], data: st.DataObject) -> None:
    nodes, frontier, size = {}, [], 0
    while size < len(leaves):
        step = data.draw(st.integers(1, len(leaves) - size))
        made, frontier = extend(size=size, frontier=frontier, leaves=[leaf_hash(x) for x in leaves[size : size + step]])
        assert not set(nodes) & {node for node, _ in made}, "a stored node never changes"
        nodes |= dict(made)
        size += step
        assert frontier_root(frontier) == defined_root(leaves[:size])
    assert nodes == Stored(leaves).nodes


@given(st.lists(st.binary(max_size=8), min_size=1, max_size=70), st.data())
def test_every_leaf_is_proven_and_nothing_else_is(leaves: list[bytes], data: st.DataObject) -> None:
    stored, size = Stored(leaves), data.draw(st.integers(1, len(leaves)))
    index = data.draw(st.integers(0, size - 1))
    proof = inclusion_proof(index=index, size=size, read=stored.read)
    fact = {"leaf": leaf_hash(leaves[index]), "index": index, "size": size, "root": stored.root(size)}
    inclusion_verify(**fact, proof=proof)
    for wrong in ({"leaf": leaf_hash(leaves[index] + b"!")}, {"root": sha256(b"other").digest()}, {"index": size}):
        with pytest.raises(ProofInvalid):
            inclusion_verify(**fact | wrong, proof=proof)
    for broken in (proof[:-1] if proof else [b"\0" * 32], [*proof, b"\0" * 32]):
        with pytest.raises(ProofInvalid):
            inclusion_verify(**fact, proof=broken)


@given(st.lists(st.binary(max_size=8), min_size=1, max_size=70), st.data())
def test_an_older_tree_is_proven_to_be_the_beginning(leaves: list[bytes], data: st.DataObject) -> None:
    stored, new = Stored(leaves), data.draw(st.integers(1, len(leaves)))
    old = data.draw(st.integers(1, new))
    proof = consistency_proof(old=old, new=new, read=stored.read)
    fact = {"old": old, "new": new, "old_root": stored.root(old), "new_root": stored.root(new)}
    consistency_verify(**fact, proof=proof)
    rewritten = Stored([leaves[0] + b"!", *leaves[1:]]).root(old)
    with pytest.raises(ProofInvalid):
        consistency_verify(**fact | {"old_root": rewritten}, proof=proof)
    with pytest.raises(ProofInvalid):
        consistency_verify(**fact | {"new_root": sha256(b"fork").digest()}, proof=proof)


KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
NAME = "holdpoint.example/ledger"


def test_a_checkpoint_is_signed_text_that_the_public_key_verifies() -> None:
    root = bytes.fromhex(ROOTS[7])
    text = checkpoint_sign(Checkpoint(NAME, 8, root), name=NAME, key=KEY)
    assert text.splitlines()[:4] == [NAME, "8", b64encode(root).decode(), ""]
    assert text.splitlines()[4].startswith(f"\u2014 {NAME} ")
    named = verifier_key_read(verifier_key(NAME, KEY.public_key()))
    assert checkpoint_verify(text, keys=[named]) == Checkpoint(NAME, 8, root)


@given(st.integers(0, 4000), st.integers(1, 255))
@example(192, 1)  # an unused bit of the root's last base64 character
def test_a_checkpoint_with_any_byte_changed_is_refused(place: int, change: int) -> None:
    text = checkpoint_sign(Checkpoint(NAME, 8, bytes.fromhex(ROOTS[7])), name=NAME, key=KEY)
    raw = bytearray(text.encode())
    raw[place % len(raw)] ^= change
    with pytest.raises((CheckpointInvalid, UnicodeDecodeError)):
        checkpoint_verify(raw.decode(), keys=[(NAME, KEY.public_key())])


def test_a_checkpoint_of_another_key_is_refused() -> None:
    text = checkpoint_sign(Checkpoint(NAME, 1, EMPTY_ROOT), name=NAME, key=KEY)
    with pytest.raises(CheckpointInvalid, match="none of the known keys"):
        checkpoint_verify(text, keys=[(NAME, Ed25519PrivateKey.generate().public_key())])
