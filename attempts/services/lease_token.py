"""The lease token that executors hold: attempt and fence, signed, so that neither can be guessed or made up."""

from uuid import UUID

from django.core.signing import BadSignature, Signer

_signer = Signer(salt="holdpoint.attempts.lease")


def lease_token_make(*, attempt_id: UUID, fence: int) -> str:
    return _signer.sign(f"{attempt_id}:{fence}")


def lease_token_read(*, token: str, attempt_id: UUID) -> int | None:
    """The fence, or nothing when the token is not one of ours for this attempt."""
    try:
        named, _, fence = _signer.unsign(token).rpartition(":")
    except BadSignature:
        return None
    return int(fence) if named == str(attempt_id) else None
