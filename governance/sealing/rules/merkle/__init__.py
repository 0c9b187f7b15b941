"""The Merkle tree of RFC 9162 (the hashing of RFC 6962), its proofs, and signed heads in C2SP's checkpoint form.

Pure: no database, no clock. A verifier that has only files computes the same.
"""

from governance.sealing.rules.merkle.checkpoint import (
    Checkpoint,
    checkpoint_sign,
    checkpoint_verify,
    key_id,
    verifier_key,
)
from governance.sealing.rules.merkle.hashing import EMPTY_ROOT, leaf_hash, node_hash
from governance.sealing.rules.merkle.tree import consistency_proof, extend, frontier_root, inclusion_proof

__all__ = [
    "EMPTY_ROOT",
    "Checkpoint",
    "checkpoint_sign",
    "checkpoint_verify",
    "consistency_proof",
    "extend",
    "frontier_root",
    "inclusion_proof",
    "key_id",
    "leaf_hash",
    "node_hash",
    "verifier_key",
]
