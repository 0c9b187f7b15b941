"""Channels, kinds and states of notifications and their routes, and people's choices about mail."""

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


class CaseNoticeKind(StrEnum):
    OPENED = "opened"
    ESCALATED = "escalated"


class NotificationState(StrEnum):
    PENDING = "pending"
    SENT = "sent"
    FAILED = "failed"  # given up; an operator may send it again
    DROPPED = "dropped"  # no longer needed: the review ended first, or the person left
    STOPPED = "stopped"  # its route is disabled; it continues when the route is enabled


class MailMode(StrEnum):
    """How a person wants mail. `route`: as the operator set it for the route."""

    ROUTE = "route"
    EACH = "each"
    DIGEST = "digest"
    OFF = "off"
