"""Signs what we send, in the form of Standard Webhooks: the receiver can check who sent it, and when."""

import base64
import hmac
from datetime import datetime
from hashlib import sha256
from uuid import UUID

from django.conf import settings

PURPOSE = "holdpoint.http-adapter.v1"


def signing_key(organization_id: UUID) -> bytes:
    """One key per organization, derived from SECRET_KEY: a receiver of one cannot sign for another."""
    return hmac.new(settings.SECRET_KEY.encode(), f"{PURPOSE}:{organization_id}".encode(), sha256).digest()


def signing_secret(organization_id: UUID) -> str:
    """What the receiver is given, in the notation of Standard Webhooks."""
    return "whsec_" + base64.b64encode(signing_key(organization_id)).decode()


def signature_headers(*, organization_id: UUID, message_id: str, at: datetime, body: bytes) -> dict[str, str]:
    timestamp = str(int(at.timestamp()))
    signed = b".".join([message_id.encode(), timestamp.encode(), body])
    digest = hmac.new(signing_key(organization_id), signed, sha256).digest()
    return {
        "webhook-id": message_id,
        "webhook-timestamp": timestamp,
        "webhook-signature": "v1," + base64.b64encode(digest).decode(),
    }
