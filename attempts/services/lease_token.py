"""The lease token that executors hold: attempt, fence and epoch, signed, so that none can be guessed or made up.

After a restore the same fence may be given out again; the epoch tells the old lease from the new one.
"""

from uuid import UUID

from django.core.signing import BadSignature, Signer

_signer = Signer(salt="holdpoint.attempts.lease")


def lease_token_make(*, attempt_id: UUID, fence: int, epoch: str) -> str:
    return _signer.sign(f"{attempt_id}:{fence}:{epoch}")


def lease_token_read(*, token: str, attempt_id: UUID, epoch: str) -> int | None:
    """The fence, or nothing when the token is not one of ours for this attempt in this epoch."""
    try:
        named, fence, given = _signer.unsign(token).split(":")
    except (BadSignature, ValueError):
        return None
    return int(fence) if (named, given) == (str(attempt_id), epoch) else None
