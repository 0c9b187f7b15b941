"""Commitments that stand for context references in holds, exports, deletions and the ledger."""

from hashlib import sha256
from secrets import token_bytes
from uuid import UUID

from governance.models import ContextReference
from governance.services.note import reference_check


def context_commitment(*, organization_id: UUID, reference: str, pointer: str) -> str:
    """SHA-256 over a salt that only the reference's row holds; the row is made on first use."""
    reference_check(reference=reference, pointer=pointer)
    salt = token_bytes(32)
    commitment = sha256(salt + str(organization_id).encode() + reference.encode()).hexdigest()
    row, _ = ContextReference.objects.get_or_create(
        organization_id=organization_id, reference=reference, defaults={"salt": salt, "commitment": commitment}
    )
    return row.commitment


def context_reference_destroy(*, organization_id: UUID, commitment: str) -> None:
    """What still names the commitment no longer means anything."""
    ContextReference.objects.filter(organization_id=organization_id, commitment=commitment).delete()
