"""Ends exceptions from the forbidden combinations of roles: on the day that two people agreed on, the clock takes the
role away."""

from datetime import date, datetime

from governance.authority.models import AuthorityChange
from governance.authority.selectors import role_exceptions
from governance.people.selectors.people import person_named, roles_held
from governance.people.services.people import person_role_take
from reasoncodes.base.actors import CLOCK


def role_exceptions_end(*, at: datetime) -> int:
    """Takes every role whose exception is over. Returns how many. Safe to repeat: a role that is gone stays gone."""
    due = [row for row in role_exceptions() if date.fromisoformat(row.details["exception_until"]) <= at.date()]
    return sum(_end(row, at) for row in due)


def _end(row: AuthorityChange, at: datetime) -> bool:
    user, role = person_named(text=row.subject), row.details["role"]
    if user is None or role not in roles_held(user_id=user.id, organization_id=row.organization_id):
        return False
    person_role_take(actor=CLOCK, at=at, user=user, organization=row.organization, role=role)
    return True
