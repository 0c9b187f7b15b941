"""The value of a card's buttons: the id of the message, and a keyed hash (the mark) of the action that it shows."""

from uuid import UUID

from django.utils.crypto import constant_time_compare, salted_hmac


def card_value(*, notification_id: UUID, action_digest: str) -> str:
    return f"{notification_id}:{_mark(notification_id, action_digest)}"


def card_read(value: str) -> tuple[UUID, str] | None:
    """Id and mark of a button's value; None if it is malformed."""
    id_, _, mark = value.partition(":")
    try:
        return UUID(id_), mark
    except ValueError:
        return None


def card_fits(*, notification_id: UUID, action_digest: str, mark: str) -> bool:
    """Whether the card was drawn from this action. If the action has changed, the mark differs."""
    # In constant time: the duration of a plain comparison would tell how much of a guessed mark is right.
    return constant_time_compare(_mark(notification_id, action_digest), mark)


def _mark(notification_id: UUID, action_digest: str) -> str:
    # Keyed, so that the digest of the action does not leave Holdpoint, and bound to one message.
    return salted_hmac("holdpoint chat card", f"{notification_id}:{action_digest}", algorithm="sha256").hexdigest()[:40]
