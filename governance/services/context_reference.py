"""Commitments that stand for context references in holds, exports, deletions and the ledger."""

from hashlib import sha256
from secrets import token_bytes
from uuid import UUID

from django.db import connection

from governance.models import ContextReference, LegalHold
from governance.services.note import reference_check
from governance.states import HoldScope, HoldState


def context_commitment(*, organization_id: UUID, reference: str, pointer: str) -> str:
    """SHA-256 over a salt that only the reference's row holds; the row is made on first use."""
    reference_check(reference=reference, pointer=pointer)
    salt = token_bytes(32)
    commitment = sha256(salt + str(organization_id).encode() + reference.encode()).hexdigest()
    row, _ = ContextReference.objects.get_or_create(
        organization_id=organization_id, reference=reference, defaults={"salt": salt, "commitment": commitment}
    )
    return row.commitment


def hold_lock(*, organization_id: UUID, shared: bool = False) -> None:
    """The lock between holds (exclusive) and erasures (shared), until the end of the transaction."""
    function = "pg_advisory_xact_lock_shared" if shared else "pg_advisory_xact_lock"
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {function}(holdpoint_hold_lock(%s))", [organization_id])


def context_reference_destroy(*, organization_id: UUID, commitment: str) -> None:
    """What still names the commitment no longer means anything. A hold that came after the erasure keeps the link:
    without it, it would not cover what comes later about the same reference."""
    hold_lock(organization_id=organization_id, shared=True)
    if not LegalHold.objects.filter(
        organization_id=organization_id, scope=HoldScope.CONTEXT, target=commitment, state=HoldState.ACTIVE
    ).exists():
        ContextReference.objects.filter(organization_id=organization_id, commitment=commitment).delete()
