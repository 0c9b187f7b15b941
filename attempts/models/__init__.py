"""Tables of this app, one concept per file."""

from attempts.models.attempt import Attempt, AttemptTransition
from attempts.models.idempotency import IdempotencyRecord
from attempts.models.review import Review
from attempts.models.slot import Slot

__all__ = ["Attempt", "AttemptTransition", "IdempotencyRecord", "Review", "Slot"]
