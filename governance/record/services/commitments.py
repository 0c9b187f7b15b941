"""Checks the references of people: each must be the hash of its salt and its person."""

from collections.abc import Iterator
from hashlib import sha256
from typing import Final
from uuid import UUID

from governance.people.models import PersonReference

REFERENCES: Final = "governance_personreference"
FALSE_COMMITMENT: Final = "its commitment is not the hash of its salt and its person"


def commitments_false() -> Iterator[UUID]:
    """The people whose reference does not commit to them. With another commitment in its row, the record would name
    another person as the one who acted."""
    rows = PersonReference.objects.order_by("user_id").values_list("user_id", "salt", "commitment")
    for user_id, salt, commitment in rows.iterator(chunk_size=2000):
        if sha256(bytes(salt) + str(user_id).encode()).hexdigest() != commitment:
            yield user_id
