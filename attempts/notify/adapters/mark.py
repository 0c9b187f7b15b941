"""What a card's buttons carry: the message's id and a mark of the proposal that it was drawn from.

The mark is keyed, so the proposal's digest does not leave the house; a changed proposal has another mark.
"""

from uuid import UUID

from django.utils.crypto import constant_time_compare, salted_hmac


def card_value(*, notification_id: UUID, action_digest: str) -> str:
    return f"{notification_id}:{_mark(notification_id, action_digest)}"


def card_read(value: str) -> tuple[UUID, str] | None:
    """None for what cannot be one of ours."""
    id_, _, mark = value.partition(":")
    try:
        return UUID(id_), mark
    except ValueError:
        return None


def card_fits(*, notification_id: UUID, action_digest: str, mark: str) -> bool:
    return constant_time_compare(_mark(notification_id, action_digest), mark)


def _mark(notification_id: UUID, action_digest: str) -> str:
    return salted_hmac("holdpoint chat card", f"{notification_id}:{action_digest}", algorithm="sha256").hexdigest()[:40]
