"""Reading a person's own sessions."""

from uuid import UUID

from allauth.usersessions.models import UserSession

from governance.models import User


def sessions_of(*, user: User) -> list[UserSession]:
    """Newest first; those that have ended otherwise are cleared away on the way."""
    return sorted(UserSession.objects.purge_and_list(user), key=lambda row: row.created_at, reverse=True)


def session_of(*, user_id: UUID, session_id: int) -> UserSession | None:
    return UserSession.objects.filter(user_id=user_id, id=session_id).first()
