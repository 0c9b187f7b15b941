"""One-time links: invite a person, withdraw an invitation, make a link for a new password, use a link. Whoever has a
link becomes the person, so each step says who made it, who saw it and from where it was used."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import transaction

from governance.ledger.services import ledger_append, person_commitment
from governance.outside.wake_up import wake_up_once
from governance.people.configured import (
    invitation_lifetime,
    mail_reaches_people,
    password_reset_lifetime,
    site_url,
)
from governance.people.errors import LinkNotValid
from governance.people.models import SignInLink, User
from governance.people.rules.sign_in import token_generate, token_hash
from governance.people.selectors.sign_in import has_sign_in, invitation_open, signed_in_from
from governance.people.services.people import (
    lockouts_lift,
    places_or_none,
    require_standing_over,
    roles_held_in,
    sessions_end_others,
)
from reasoncodes.base.actors import Actor, ActorKind
from reasoncodes.base.errors import FieldError, InvalidInput, NotFound, WrongState
from reasoncodes.base.tenancy import every_tenant

SIGN_IN_MAIL_TASK = "governance.tasks.sign_in_mail_send"
INVITATION, PASSWORD_RESET = SignInLink.Purpose.INVITATION, SignInLink.Purpose.PASSWORD_RESET
MAIL, SHOWN = SignInLink.Delivery.MAIL, SignInLink.Delivery.SHOWN


@dataclass(frozen=True, slots=True)
class IssuedLink:
    """The row and, if it is to be shown, the clear text of its token, which is not stored. None: it goes by mail."""

    link: SignInLink
    token: str | None

    @property
    def address(self) -> str:
        """The link itself, without our own name in front if the installation does not know it; empty: by mail."""
        return "" if self.token is None else link_address(self.token)


def link_address(token: str) -> str:
    return f"{site_url()}/accounts/link/{token}/"


def invitation_goes_by_mail(*, user: User) -> bool:
    """Otherwise somebody sees the link, and could use it."""
    return bool(user.email) and mail_reaches_people()


def invitation_create(*, actor: Actor, at: datetime, user: User, shown_to: UUID | None = None) -> IssuedLink:
    """Invites a person who has no sign-in yet; an earlier invitation ends. `shown_to` is the person who will see the
    link if it cannot be mailed: the one who confirms, else the actor."""
    require_standing_over(actor=actor, user=user)
    with transaction.atomic():
        locked = _locked(user)
        # Otherwise an operator could take over an account by inviting its owner once more.
        if has_sign_in(user=locked):
            raise WrongState("They can sign in already. For a lost password make a link for a new one.")
        return _issue(INVITATION, actor=actor, at=at, user=locked, shown_to=shown_to)


def invitation_withdraw(*, actor: Actor, at: datetime, user: User) -> None:
    """The link stops working with the commit."""
    require_standing_over(actor=actor, user=user)
    with transaction.atomic():
        locked = _locked(user)
        link = invitation_open(user=locked)
        if link is None:
            raise WrongState("There is no open invitation.")
        _end(link, SignInLink.Ending.WITHDRAWN, at=at)
        _record("invitation.withdrawn", link, actor=actor, at=at)


def password_reset_issue(*, actor: Actor, at: datetime, user: User, shown_to: UUID | None = None) -> IssuedLink:
    """A link for a new password, for installations without mail. One person alone must not reach this: they would see
    the link and become the other person."""
    require_standing_over(actor=actor, user=user)
    with transaction.atomic():
        locked = _locked(user)
        if not locked.is_active or not has_sign_in(user=locked):
            raise WrongState("They have no sign-in yet: invite them.")
        return _issue(PASSWORD_RESET, actor=actor, at=at, user=locked, shown_to=shown_to, delivery=SHOWN)


def password_reset_by_mail(*, actor: Actor, at: datetime, user: User) -> SignInLink:
    """The link goes to the person's own address and is seen by nobody else."""
    with transaction.atomic():
        return _issue(PASSWORD_RESET, actor=actor, at=at, user=_locked(user), delivery=MAIL).link


def sign_in_link_use(*, at: datetime, token: str, password: str | None, address: str, browser: str) -> SignInLink:
    """Uses the link: sets the password, or none if the person goes on to add a passkey. A new password ends every
    session and every lock; second factors stay."""
    with transaction.atomic():
        link = _locked_by_token(token)
        if link is None or link.ended_at is not None or link.expires_at <= at or not link.user.is_active:
            raise LinkNotValid
        if password is not None:
            _password_set(link.user, password)
        elif link.purpose != INVITATION:
            raise InvalidInput(errors=[FieldError("/password", "is required")])
        sessions_end_others(user=link.user, current_key=None)
        lockouts_lift(user=link.user)
        link.used_from, link.used_browser = address, browser[:200]
        link.used_beside = link.shown_to_id is not None and signed_in_from(user_id=link.shown_to_id, address=address)
        _end(link, SignInLink.Ending.USED, at=at)
        action = "invitation.accepted" if link.purpose == INVITATION else "password_reset.used"
        _record(action, link, actor=Actor(ActorKind.PERSON, link.user_id), at=at)
    return link


def password_change(*, at: datetime, user: User, password: str, current_key: str | None) -> None:
    """By the person, who has just typed the old one. Their other sessions end."""
    with transaction.atomic():
        _password_set(user, password)
        sessions_end_others(user=user, current_key=current_key)
        _record_person("person.password_changed", user, actor=Actor(ActorKind.PERSON, user.id), at=at, payload={})


def _password_set(user: User, password: str) -> None:
    try:
        validate_password(password, user)
    except ValidationError as error:
        raise InvalidInput(errors=[FieldError("/password", message) for message in error.messages]) from error
    # Sessions are signed with the password's hash: all of them end with the commit.
    user.set_password(password)
    user.save(update_fields=["password"])


def _locked(user: User) -> User:
    # Two operators at once: the second one waits, and ends the first one's link instead of breaking the constraint.
    found = User.objects.select_for_update(no_key=True).filter(id=user.id, is_active=True).first()
    if found is None:
        raise NotFound
    return found


def _locked_by_token(token: str) -> SignInLink | None:
    wanted = SignInLink.objects.filter(token_sha256=token_hash(token))
    known = wanted.values_list("user_id", flat=True).first()
    if known is None:
        return None
    # The person first, as everywhere. Two uses at once: the second one waits here, and then reads a link that ended.
    User.objects.select_for_update(no_key=True).get(id=known)
    return wanted.select_related("user").first()


def _issue(
    purpose: SignInLink.Purpose,
    *,
    actor: Actor,
    at: datetime,
    user: User,
    shown_to: UUID | None = None,
    delivery: SignInLink.Delivery | None = None,
) -> IssuedLink:
    for old in SignInLink.objects.filter(user=user, purpose=purpose, ended_at=None):
        _end(old, SignInLink.Ending.REPLACED, at=at)
    by_mail = (delivery or (MAIL if invitation_goes_by_mail(user=user) else SHOWN)) == MAIL
    person = actor.id if actor.kind is ActorKind.PERSON else None
    token = None if by_mail else token_generate()
    lifetime = invitation_lifetime() if purpose == INVITATION else password_reset_lifetime()
    link = SignInLink.objects.create(
        user=user,
        purpose=purpose,
        delivery=MAIL if by_mail else SHOWN,
        token_sha256=None if token is None else token_hash(token),
        created_at=at,
        created_by_id=person,
        shown_to_id=None if by_mail else shown_to or person,
        expires_at=at + lifetime,
        mail_due_at=at if by_mail else None,
    )
    _record(f"{purpose}.created", link, actor=actor, at=at)
    if by_mail:
        wake_up_once(SIGN_IN_MAIL_TASK)
    return IssuedLink(link=link, token=token)


def _end(link: SignInLink, how: SignInLink.Ending, *, at: datetime) -> None:
    link.ended_at, link.ended_how, link.mail_due_at = at, how, None
    link.save(update_fields=["ended_at", "ended_how", "mail_due_at", "used_from", "used_browser", "used_beside"])


def _record(action: str, link: SignInLink, *, actor: Actor, at: datetime) -> None:
    shown = person_commitment(user_id=link.shown_to_id) if link.shown_to_id else None
    payload = {
        "link": str(link.id),
        "delivery": str(link.delivery),
        "shown_to": shown,
        "used_beside": link.used_beside,
        "until": link.expires_at.isoformat(),
    }
    _record_person(action, link.user, actor=actor, at=at, payload=payload)


def _record_person(action: str, user: User, *, actor: Actor, at: datetime, payload: dict[str, Any]) -> None:
    """In every organization where they have a role, so that its auditors see it; without a role, in none."""
    person = person_commitment(user_id=user.id)
    with every_tenant():
        for place in places_or_none(roles_held_in(user=user)):
            ledger_append(
                action=action,
                organization_id=place,
                subject_type="person",
                subject_id=user.id,
                actor=actor,
                at=at,
                payload={"person": person, **payload},
            )
