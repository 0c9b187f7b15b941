"""Signs what we send, in the form of Standard Webhooks: the receiver can check who sent it, and when.

No secret is stored: each is derived from SECRET_KEY and what it is for. While SECRET_KEY is being changed, what the
old one (SECRET_KEY_FALLBACKS) derives signs too, so that a receiver's secret stays good until it was replaced.
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
    """Of the secret that is in force first."""
    return [hmac.new(secret.encode(), purpose.encode(), sha256).digest() for secret in secret_keys()]


def secret_text(key: bytes) -> str:
    """What the receiver is given, in the notation of Standard Webhooks."""
    return "whsec_" + base64.b64encode(key).decode()


def _signing_keys(organization_id: UUID) -> list[bytes]:
    """One purpose per organization: a receiver of one cannot sign for another."""
    return derived_keys(f"{PURPOSE}:{organization_id}")


def signing_secret(organization_id: UUID) -> str:
    return secret_text(_signing_keys(organization_id)[0])


def signed_headers(*, keys: Iterable[bytes], message_id: str, at: datetime, body: bytes) -> dict[str, str]:
    """With one signature per key; a receiver accepts any of them."""
    timestamp = str(int(at.timestamp()))
    signed = b".".join([message_id.encode(), timestamp.encode(), body])
    made = [base64.b64encode(hmac.new(key, signed, sha256).digest()).decode() for key in keys]
    return {
        "webhook-id": message_id,
        "webhook-timestamp": timestamp,
        "webhook-signature": " ".join(f"v1,{one}" for one in made),
    }


def signature_headers(*, organization_id: UUID, message_id: str, at: datetime, body: bytes) -> dict[str, str]:
    """Of the http adapter."""
    return signed_headers(keys=_signing_keys(organization_id), message_id=message_id, at=at, body=body)
