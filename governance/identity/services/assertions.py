"""A SAML assertion counts once. Its id is kept in Valkey until the assertion ends by itself."""

from datetime import datetime
from hashlib import sha256
from uuid import UUID

from redis.exceptions import RedisError

from governance.identity.errors import ProviderAnswerInvalid
from governance.outside.valkey import valkey

SKEW_SECONDS = 300  # python3-saml accepts assertions so long after their end


def assertion_use(*, at: datetime, provider_id: UUID, assertion_id: str, until: int) -> None:
    """Raises if it was used before, and if that cannot be known."""
    name = sha256(f"{provider_id} {assertion_id}".encode()).hexdigest()
    seconds = max(1, int(until - at.timestamp()) + SKEW_SECONDS)
    try:
        fresh = valkey().set(f"holdpoint:saml:{name}", "1", nx=True, ex=seconds)
    except RedisError as error:
        raise ProviderAnswerInvalid("Whether the answer was used before cannot be checked now.") from error
    if not fresh:
        raise ProviderAnswerInvalid("This answer was used before.")
