"""What an adapter is: the call that it gets, the outcome that it returns, its name, the effect that counts, and the
signature of what it sends. `attempts/apps.py` registers the adapters.

Adapters use no database and know no retry rule.
"""

import base64
import hmac
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from hashlib import sha256
from typing import Any, Protocol
from uuid import UUID

from governance.contracts.states import STRICTNESS
from governance.outside.configured import secret_keys


class OutcomeKind(StrEnum):
    SUCCESS = "success"
    FAILURE = "failure"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class AdapterCall:
    """One execution. It contains no payload, only the payload's reference and hash."""

    attempt_id: UUID
    organization_id: UUID
    organization: str
    workflow_slug: str
    contract_version: int
    operation: str
    target_ref: str
    payload_ref: str
    payload_sha256: str
    fields: tuple[str, ...]
    effect_key: str
    metadata: Mapping[str, Any]
    seconds: float

    @property
    def route(self) -> str:
        """The name under which the settings list the target of this call."""
        return f"{self.organization}/{self.workflow_slug}"

    def document(self) -> dict[str, Any]:
        """The document that is sent to the receiver."""
        return {
            "attempt_id": str(self.attempt_id),
            "organization": self.organization,
            "workflow_slug": self.workflow_slug,
            "contract_version": self.contract_version,
            "operation": self.operation,
            "target_ref": self.target_ref,
            "payload_ref": self.payload_ref,
            "payload_sha256": self.payload_sha256,
            "fields": list(self.fields),
            "effect_key": self.effect_key,
            "metadata": dict(self.metadata),
        }


@dataclass(frozen=True, slots=True)
class Outcome:
    """`retryable` belongs to a failure: the receiver did not act, and a later try may succeed. Whether there is one is
    decided by contract and effect."""

    kind: OutcomeKind
    retryable: bool = False
    response_metadata: dict[str, Any] = field(default_factory=dict)
    cost: dict[str, Any] | None = None


def success(**response_metadata: Any) -> Outcome:
    return Outcome(OutcomeKind.SUCCESS, response_metadata=response_metadata)


def failure(why: str, *, retryable: bool = False, **response_metadata: Any) -> Outcome:
    """The receiver did not act. `why` is one of our own words."""
    # Never text of the receiver: response metadata is stored, and an error text may contain anything.
    return Outcome(OutcomeKind.FAILURE, retryable, {"failure": why, **response_metadata})


def unknown(why: str, **response_metadata: Any) -> Outcome:
    """Something was sent, and nobody knows whether it took effect. It is never retried automatically."""
    return Outcome(OutcomeKind.UNKNOWN, False, {"failure": why, **response_metadata})


class Adapter(Protocol):
    """`effect` is the least strict effect that a contract with this adapter may declare."""

    name: str
    effect: str
    retryable: tuple[str, ...]
    """For people: which failures it reports as retryable."""

    def call(self, call: AdapterCall) -> Outcome: ...

    def receiver(self, route: str) -> str:
        """Who is called for a route, such as a host and port. One that hangs delays calls to this receiver only."""
        ...


ADAPTERS: dict[str, Adapter] = {}


def register_adapters(*adapters: Adapter) -> None:
    ADAPTERS.update({adapter.name: adapter for adapter in adapters})


def adapter_for(name: str) -> Adapter:
    """The adapter of this name; KeyError if there is none. The attempt is then not executed."""
    return ADAPTERS[name]


def receiver_name(*, connector: str, route: str) -> str:
    """Empty if there is nobody to call: such an attempt fails at once."""
    adapter = ADAPTERS.get(connector)
    return adapter.receiver(route)[:200] if adapter else ""


def effect_in_force(*, adapter: str, effect: str) -> str:
    """The stricter effect of what the contract declares and what the adapter declares."""
    # An unknown adapter or effect counts as `once`, the strictest: a wrong `idempotent` would permit retries.
    known = ADAPTERS.get(adapter)
    declared = (effect, known.effect if known else "once")
    return max(declared, key=lambda name: STRICTNESS.get(name, 2)) if set(declared) <= set(STRICTNESS) else "once"


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
