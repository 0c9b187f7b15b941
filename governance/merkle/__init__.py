"""The Merkle tree of RFC 9162 (the hashing of RFC 6962), its proofs, and signed heads in C2SP's checkpoint form.

Pure: no database, no clock. A verifier that has only files computes the same.
"""

from governance.merkle.checkpoint import Checkpoint, checkpoint_sign, checkpoint_verify, key_id, verifier_key
from governance.merkle.hashing import EMPTY_ROOT, leaf_hash, node_hash
from governance.merkle.proofs import ProofInvalid, consistency_verify, inclusion_verify
from governance.merkle.tree import consistency_proof, extend, frontier_root, inclusion_proof

__all__ = [
    "EMPTY_ROOT",
    "Checkpoint",
    "ProofInvalid",
    "checkpoint_sign",
    "checkpoint_verify",
    "consistency_proof",
    "consistency_verify",
    "extend",
    "frontier_root",
    "inclusion_proof",
    "inclusion_verify",
    "key_id",
    "leaf_hash",
    "node_hash",
    "verifier_key",
]
