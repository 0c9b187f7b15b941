"""Signs what we send as Standard Webhooks demand, so that the receiver can check who sent it, and when.

Secrets are derived from SECRET_KEY and a purpose, and not stored: a dump of the database contains none.
"""

import base64
import hmac
from collections.abc import Iterable
from datetime import datetime
from hashlib import sha256
from uuid import UUID

from governance.outside.configured import secret_keys

PURPOSE = "holdpoint.http-adapter.v1"


def derived_keys(purpose: str) -> list[bytes]:
    """The derived keys: of SECRET_KEY first, then of SECRET_KEY_FALLBACKS."""
    # The fallbacks sign too, so that receivers keep verifying while SECRET_KEY is being changed.
    return [hmac.new(secret.encode(), purpose.encode(), sha256).digest() for secret in secret_keys()]


def secret_text(key: bytes) -> str:
    """The key as the receiver gets it, in the notation of Standard Webhooks."""
    return "whsec_" + base64.b64encode(key).decode()


def _signing_keys(organization_id: UUID) -> list[bytes]:
    # The organization is part of the purpose: a receiver of one organization cannot sign for another.
    return derived_keys(f"{PURPOSE}:{organization_id}")


def signing_secret(organization_id: UUID) -> str:
    return secret_text(_signing_keys(organization_id)[0])


def signed_headers(*, keys: Iterable[bytes], message_id: str, at: datetime, body: bytes) -> dict[str, str]:
    """The headers, with one signature per key; a receiver accepts any of them."""
    # Id and time are signed too: otherwise an old message could be sent again under a new id.
    timestamp = str(int(at.timestamp()))
    signed = b".".join([message_id.encode(), timestamp.encode(), body])
    made = [base64.b64encode(hmac.new(key, signed, sha256).digest()).decode() for key in keys]
    return {
        "webhook-id": message_id,
        "webhook-timestamp": timestamp,
        "webhook-signature": " ".join(f"v1,{one}" for one in made),
    }


def signature_headers(*, organization_id: UUID, message_id: str, at: datetime, body: bytes) -> dict[str, str]:
    """The headers of the http adapter."""
    return signed_headers(keys=_signing_keys(organization_id), message_id=message_id, at=at, body=body)
