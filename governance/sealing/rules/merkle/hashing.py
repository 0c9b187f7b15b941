"""The hashes of leaves and inner nodes (RFC 6962). Their first bytes differ: otherwise an inner node could be presented
as a leaf, and a proof of it would verify."""

from hashlib import sha256

EMPTY_ROOT = sha256(b"").digest()


def leaf_hash(data: bytes) -> bytes:
    return sha256(b"\x00" + data).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    return sha256(b"\x01" + left + right).digest()
