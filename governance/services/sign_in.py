"""Ending sessions, and what operators do for somebody who lost a phone or guessed too often."""

from datetime import datetime

from allauth.mfa.models import Authenticator
from axes.models import AccessAttempt
from django.db import transaction

from governance.ledger.append import ledger_append
from governance.models import RoleGroup, User
from governance.selectors.sign_in import session_of, sessions_of
from governance.services.note import note_create
from reasoncodes.actors import Actor
from reasoncodes.codes import Scope
from reasoncodes.errors import NotFound, ScopeMissing
from reasoncodes.selectors import reason_code_require
from reasoncodes.tenancy import every_tenant


def session_end(*, user: User, session_id: int) -> None:
    """One of their own; somebody else's does not exist. The browser that holds it is out with its next request."""
    session = session_of(user_id=user.id, session_id=session_id)
    if session is None:
        raise NotFound
    session.end()


def sessions_end_others(*, user: User, current_key: str | None) -> int:
    others = [session for session in sessions_of(user=user) if session.session_key != current_key]
    for session in others:
        session.end()
    return len(others)


def sign_in_reset(*, actor: Actor, at: datetime, user: User, reason_code: str, note: str = "") -> None:
    """By an operator, for a person who cannot sign in any more or must not go on: every session ends, second factors
    and passkeys are gone, a lock is lifted. The password stays."""
    _require_standing(actor, user)
    reason_code_require(organization_id=None, scope=Scope.INTERVENTION, code=reason_code, note=note)
    with transaction.atomic():
        stored = note_create(organization_id=None, text=note)
        removed, _ = Authenticator.objects.filter(user=user).delete()
        AccessAttempt.objects.filter(username=user.username).delete()
        ended = sessions_end_others(user=user, current_key=None)
        ledger_append(
            action="person.sign_in_reset",
            organization_id=None,
            subject_type="person",
            subject_id=user.id,
            actor=actor,
            at=at,
            payload={"sessions": ended, "factors": removed, "note_sha256": stored.sha256 if stored else None},
            reason_code=reason_code,
        )


def _require_standing(actor: Actor, user: User) -> None:
    """Whoever operates every organization of the person. An administrator's sign-in is a matter for administrators:
    otherwise an operator with their password could take their second factor away."""
    with every_tenant():
        where = frozenset(RoleGroup.objects.filter(group__user=user).values_list("organization_id", flat=True))
    administrator = actor.id is not None and User.objects.filter(id=actor.id, is_superuser=True).exists()
    if not administrator and (user.is_superuser or not where or not where <= actor.organization_ids):
        raise ScopeMissing("They act in more than you operate: ask an administrator of the installation.")
