"""Tables of this app, one concept per file."""

from attempts.models.attempt import Attempt, AttemptTransition
from attempts.models.execution import DispatchIntent, Receipt
from attempts.models.idempotency import IdempotencyRecord
from attempts.models.quarantine import QuarantineCase
from attempts.models.review import Delegation, Review, ReviewVote
from attempts.models.slot import Slot

__all__ = [
    "Attempt",
    "AttemptTransition",
    "Delegation",
    "DispatchIntent",
    "IdempotencyRecord",
    "QuarantineCase",
    "Receipt",
    "Review",
    "ReviewVote",
    "Slot",
]
