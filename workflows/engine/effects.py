"""What the engine asks its caller to do in the same transaction, as plain values."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

SUCCEEDED = "succeeded"


@dataclass(frozen=True, slots=True)
class AskGate:
    """May this step's request go out? The answer comes back as GateAnswered."""

    step: UUID
    step_id: str
    kind: str
    governed: bool
    event_type: str
    payload: dict[str, Any]
    again: bool = False  # another try of a step that was released before
    operation: str = ""  # what is asked for, if not the event; and whom it concerns, if not the case
    target: str = ""
    scope: str = ""


@dataclass(frozen=True, slots=True)
class SendRequest:
    """A request to a module: a row in the outbox."""

    step: UUID
    event_type: str
    payload: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Emit:
    """A lifecycle event of the run: a row in the outbox."""

    event_type: str
    payload: dict[str, Any]


@dataclass(frozen=True, slots=True)
class OpenReview:
    """Open a review: a human-review step waits in the review queue. `shown` is what its kind prepared for people."""

    step: UUID
    step_id: str
    tier: str
    shown: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Perform:
    """Something that Holdpoint does itself once the advance is written, and then reports as the step's completion."""

    step: UUID
    step_id: str
    kind: str
    payload: dict[str, Any]


@dataclass(frozen=True, slots=True)
class EndReview:
    step: UUID
    reason_code: str


@dataclass(frozen=True, slots=True)
class Settle:
    """The governed attempt behind a step has ended: succeeded, failed, retry, unknown or withdrawn."""

    step: UUID
    result: str
    reason_code: str = ""


Effect = AskGate | SendRequest | Emit | OpenReview | Perform | EndReview | Settle
