"""Ending a person's sessions: the browser that holds one is signed out with its next request."""

from governance.models import User
from governance.selectors.sign_in import session_of, sessions_of
from reasoncodes.errors import NotFound


def session_end(*, user: User, session_id: int) -> None:
    """One of their own; somebody else's does not exist."""
    session = session_of(user_id=user.id, session_id=session_id)
    if session is None:
        raise NotFound
    session.end()


def sessions_end_others(*, user: User, current_key: str | None) -> int:
    others = [session for session in sessions_of(user=user) if session.session_key != current_key]
    for session in others:
        session.end()
    return len(others)
