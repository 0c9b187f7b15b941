"""Checks the references of people: each must be the hash of its salt and its person."""

from collections.abc import Iterator
from hashlib import sha256

from governance.people.models import PersonReference


def commitments_verify() -> list[str]:
    """Each reference that does not commit to its person, in words. With another commitment in its row, the record would
    name another person as the one who acted."""
    return list(_faults())


def _faults() -> Iterator[str]:
    rows = PersonReference.objects.order_by("user_id").values_list("user_id", "salt", "commitment")
    for user_id, salt, commitment in rows.iterator(chunk_size=2000):
        if sha256(bytes(salt) + str(user_id).encode()).hexdigest() != commitment:
            yield f"governance_personreference {user_id}: its commitment is not the hash of its salt and its person"
