"""The value of a card's buttons: the id of the message, and a keyed hash (the mark) of the action that it shows."""

from uuid import UUID

from django.utils.crypto import constant_time_compare, salted_hmac

from governance.outside.configured import secret_keys


def card_value(*, notification_id: UUID, action_digest: str) -> str:
    return f"{notification_id}:{_mark(notification_id, action_digest, secret_keys()[0])}"


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
    # With former keys too: cards in channels keep their buttons while SECRET_KEY is being changed.
    return any(constant_time_compare(_mark(notification_id, action_digest, key), mark) for key in secret_keys())


def _mark(notification_id: UUID, action_digest: str, secret: str) -> str:
    # Keyed, so that the digest of the action does not leave Holdpoint, and bound to one message.
    made = salted_hmac("holdpoint chat card", f"{notification_id}:{action_digest}", secret=secret, algorithm="sha256")
    return made.hexdigest()[:40]
