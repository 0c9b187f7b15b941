"""Tables of this app, one concept per file."""

from attempts.models.attempt import Attempt, AttemptTransition
from attempts.models.chat import ChatCallback, ChatIdentity, ChatLinkCode, ChatWorkspace
from attempts.models.execution import DispatchIntent, Receipt
from attempts.models.idempotency import IdempotencyRecord
from attempts.models.notification import MailChoice, Notification, NotificationRoute
from attempts.models.quarantine import QuarantineCase
from attempts.models.review import Delegation, Review, ReviewVote
from attempts.models.slot import Slot

__all__ = [
    "Attempt",
    "AttemptTransition",
    "ChatCallback",
    "ChatIdentity",
    "ChatLinkCode",
    "ChatWorkspace",
    "Delegation",
    "DispatchIntent",
    "IdempotencyRecord",
    "MailChoice",
    "Notification",
    "NotificationRoute",
    "QuarantineCase",
    "Receipt",
    "Review",
    "ReviewVote",
    "Slot",
]
