"""What an adapter gets and what it answers. An adapter knows no database, no attempt row and no retry rule."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol
from uuid import UUID


class OutcomeKind(StrEnum):
    SUCCESS = "success"
    FAILURE = "failure"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class AdapterCall:
    """One execution, by reference: there is no payload in it, only where it is and its hash."""

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
        """How settings name the target of this call."""
        return f"{self.organization}/{self.workflow_slug}"

    def document(self) -> dict[str, Any]:
        """What the receiver is told."""
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
    """`retryable` belongs to a failure: the receiver did not do it, and doing it later may work. It is not a promise
    that it will be tried again; contract and effect decide that."""

    kind: OutcomeKind
    retryable: bool = False
    response_metadata: dict[str, Any] = field(default_factory=dict)
    cost: dict[str, Any] | None = None


def success(**response_metadata: Any) -> Outcome:
    return Outcome(OutcomeKind.SUCCESS, response_metadata=response_metadata)


def failure(why: str, *, retryable: bool = False, **response_metadata: Any) -> Outcome:
    """`why` is a word of ours, never a text of the receiver's."""
    return Outcome(OutcomeKind.FAILURE, retryable, {"failure": why, **response_metadata})


def unknown(why: str, **response_metadata: Any) -> Outcome:
    """Something was sent, and nobody knows whether it took effect. Never retried."""
    return Outcome(OutcomeKind.UNKNOWN, False, {"failure": why, **response_metadata})


class Adapter(Protocol):
    """`effect` is the most harmless class that a contract with this adapter may claim."""

    name: str
    effect: str
    retryable: tuple[str, ...]
    """In words, for people: which failures it reports as retryable."""

    def call(self, call: AdapterCall) -> Outcome: ...
