"""States and moves of an attempt, as data: model, database trigger and tests read the same (S1, exactly these)."""

from enum import StrEnum


class NotifyChannel(StrEnum):
    SLACK = "slack"
    EMAIL = "email"


class RouteState(StrEnum):
    ACTIVE = "active"
    DISABLED = "disabled"


class NotifyKind(StrEnum):
    """An approval card in a chat, a mail to one person, a reminder before the deadline, and one to the operators."""

    CARD = "card"
    MAIL = "mail"
    REMINDER = "reminder"
    ESCALATION = "escalation"


class NotificationState(StrEnum):
    PENDING = "pending"
    SENT = "sent"
    FAILED = "failed"  # given up; a person may send it again
    DROPPED = "dropped"  # nobody needs it any more: the review ended first, or the person left
    STOPPED = "stopped"  # its route is disabled; goes on when the route is enabled


class MailMode(StrEnum):
    """What a person chose. `route`: as the operator set it."""

    ROUTE = "route"
    EACH = "each"
    DIGEST = "digest"
    OFF = "off"
