"""States and moves of webhook deliveries, and why an endpoint is disabled."""

from enum import StrEnum


class WebhookDeliveryState(StrEnum):
    """Of a webhook. An ended one goes back to `pending` when a person asks for it again."""

    PENDING = "pending"
    DELIVERED = "delivered"
    FAILED = "failed"


DELIVERY_MOVES: frozenset[tuple[str, str]] = frozenset(
    {("pending", "delivered"), ("pending", "failed"), ("delivered", "pending"), ("failed", "pending")}
)


class DisabledWhy(StrEnum):
    """Why an endpoint gets nothing."""

    PERSON = "person"
    GONE = "gone"  # it answered 410
    FAILING = "failing"  # for days
    REMOVED = "removed"
