"""People: create, give and take roles, end access, end sessions, reset a sign-in."""

from collections.abc import Iterable
from datetime import datetime
from uuid import UUID

from allauth.mfa.models import Authenticator
from axes.models import AccessAttempt
from django.db import IntegrityError, transaction

from governance.boundary.services import note_create
from governance.enforcement.sql import send_lock_exclude
from governance.ledger.services import ledger_append, person_commitment
from governance.outside.keyed_hash import keyed_hash
from governance.people.errors import AdministratorProtected, RolesForbidden
from governance.people.hooks import standing_lost
from governance.people.models import SignInLink, User
from governance.people.rules.combinations import combinations_with
from governance.people.selectors.people import is_administrator, provider_elsewhere, standing_held
from governance.people.selectors.sign_in import session_of, sessions_of
from governance.people.services.founding import founding_settle
from governance.people.services.leaving import accounts_suspend, sessions_end, work_release
from governance.people.services.passkeys import passkeys_end
from governance.people.services.role_groups import role_group_ensure
from governance.retention.selectors.subjects import person_organizations
from governance.tenancy.models import Organization, RoleGroup
from reasoncodes.base.actors import Actor, ActorKind
from reasoncodes.base.errors import AlreadyExists, NotFound, Refused, ScopeMissing, WrongState
from reasoncodes.base.tenancy import every_tenant
from reasoncodes.codes import Scope
from reasoncodes.selectors import reason_code_require


def person_create(
    *,
    actor: Actor,
    at: datetime,
    username: str,
    is_staff: bool = False,
    email: str = "",
) -> User:
    """Without a password: the person chooses it themselves, by an invitation. The ledger gets the fact and the person's
    id; nothing else about the person."""
    user = User(username=username, email=email, is_staff=is_staff)
    user.set_unusable_password()
    try:
        with transaction.atomic():
            user.save(force_insert=True)
            ledger_append(
                action="person.created",
                organization_id=None,
                subject_type="person",
                subject_id=user.id,
                actor=actor,
                at=at,
                payload={"is_staff": is_staff},
            )
    # The unique constraint decides: a look-up before the insert would lose the race against a second request.
    except IntegrityError as error:
        raise AlreadyExists("A person with this username exists.") from error
    return user


def person_deactivate(*, actor: Actor, at: datetime, user_id: UUID, reason_code: str, note: str = "") -> User:
    """Ends a person's access: roles, password and sessions end with the commit, claims and delegations are given back,
    and service accounts that they answer for are suspended. Actions that they released are not sent afterwards, and no
    vote of theirs commits later."""
    reason_code_require(organization_id=None, scope=Scope.INTERVENTION, code=reason_code, note=note)
    with transaction.atomic():
        # First, before any row lock. Waits for intents that are being written; later ones see that the person is gone.
        send_lock_exclude()
        released = work_release(actor=actor, at=at, user_id=user_id)
        # Waits for votes that are being cast: they lock the same row FOR SHARE (`person_stays`).
        user = User.objects.select_for_update().filter(id=user_id).first()
        places = person_organizations(user=user) if user else set()
        # The actor must operate every organization of the person: access ends in all of them.
        if user is not None:
            _require_right_over_administrator(actor, user, places)
        if user is None or not all(actor.may_act_in(place) for place in places) or not (places or user.is_superuser):
            raise NotFound
        if not user.is_active:
            raise WrongState("This person has no access already.")
        stored = note_create(organization_id=None, text=note)
        user.groups.clear()
        user.is_active = False
        user.set_unusable_password()  # sessions are signed with the password's hash: all of them end
        user.save(update_fields=["is_active", "password"])
        links_end(user=user, at=at)
        released["sessions"] = sessions_end(user=user)
        suspended = accounts_suspend(actor=actor, at=at, user=user)
        # One entry per organization, because each of them loses this person. Sorted, so that the order of entries is
        # fixed. An administrator may have none.
        for place in places_or_none(places):
            if place is not None:
                standing_lost(user_id=user.id, organization_id=place, role=None, actor=actor, at=at)
            ledger_append(
                action="person.deactivated",
                organization_id=place,
                subject_type="person",
                subject_id=user.id,
                actor=actor,
                at=at,
                payload={
                    "person": person_commitment(user_id=user.id),
                    "note_sha256": stored.sha256 if stored else None,
                    "released": released,
                    "suspended": [str(one.id) for one in suspended if one.organization_id == place],
                },
                reason_code=reason_code,
            )
    return user


def person_reactivate(*, actor: Actor, at: datetime, user_id: UUID, organization: Organization) -> User:
    """Opens the account again, without roles, password or second factor: each is given anew."""
    _require_standing(actor, organization)
    with transaction.atomic():
        user = User.objects.select_for_update().filter(id=user_id).first()
        if user is None:
            raise NotFound
        if user.is_active:
            raise WrongState("This person has access.")
        user.is_active = True
        user.save(update_fields=["is_active"])
        ledger_append(
            action="person.reactivated",
            organization_id=organization.id,
            subject_type="person",
            subject_id=user.id,
            actor=actor,
            at=at,
            payload={"person": person_commitment(user_id=user.id)},
        )
    return user


def role_check(*, user_id: UUID, organization: Organization, role: str) -> None:
    """Refuses a role that makes a forbidden pair with a role that the person has, and any role for a person whom
    another organization's identity provider signs in."""
    if provider_elsewhere(user_id=user_id, organization_id=organization.id):
        # Their own organization's provider could no longer sign them in.
        raise Refused("This person signs in through another organization's identity provider.")
    pairs = combinations_with(role, standing_held(user_id=user_id, organization_id=organization.id))
    if pairs:
        raise RolesForbidden(
            " ".join(f"{pair.one} and {pair.other}: the person {pair.why}." for pair in pairs),
            subject_type="person",
            subject_id=user_id,
            organization_id=organization.id,
        )


def person_role_give(
    *,
    actor: Actor,
    at: datetime,
    user: User,
    organization: Organization,
    role: str,
    exception: bool = False,
) -> None:
    """`exception`: two people allowed a forbidden pair of roles for a time (`RoleGive`)."""
    _require_standing(actor, organization)
    with transaction.atomic():
        # Two roles of one person given at once would each see none of the other, and both would pass the check.
        User.objects.select_for_update(no_key=True).get(id=user.id)
        group = role_group_ensure(organization=organization, role=role).group
        if user.groups.filter(id=group.id).exists():
            return
        if not exception:
            role_check(user_id=user.id, organization=organization, role=role)
        user.groups.add(group)
        _record("person.role_given", actor=actor, at=at, user=user, organization=organization, role=role)
        founding_settle(organization=organization, at=at)


def person_role_take(*, actor: Actor, at: datetime, user: User, organization: Organization, role: str) -> None:
    """Takes a role away. Actions that this person released are not sent once the role is gone, and no vote commits
    later that stands on it."""
    _require_standing(actor, organization)
    with transaction.atomic():
        # Without it an intent could commit a moment after the role of the person who released the action was taken.
        send_lock_exclude()
        # Waits for votes that are being cast: they lock the same row FOR SHARE (`person_stays`). Without it a vote
        # could commit after the tier that it stands on was taken away.
        User.objects.select_for_update(no_key=True).filter(id=user.id).first()
        group = role_group_ensure(organization=organization, role=role).group
        if not user.groups.filter(id=group.id).exists():
            return
        user.groups.remove(group)
        standing_lost(user_id=user.id, organization_id=organization.id, role=role, actor=actor, at=at)
        _record("person.role_taken", actor=actor, at=at, user=user, organization=organization, role=role)


def _require_standing(actor: Actor, organization: Organization) -> None:
    if not actor.may_act_in(organization.id):
        raise NotFound


def _record(action: str, *, actor: Actor, at: datetime, user: User, organization: Organization, role: str) -> None:
    ledger_append(
        action=action,
        organization_id=organization.id,
        subject_type="organization",
        subject_id=organization.id,
        actor=actor,
        at=at,
        payload={"role": role, "person": person_commitment(user_id=user.id)},
    )


def session_end(*, user: User, session_id: int) -> None:
    """Ends one of the person's own sessions; somebody else's is 404. The browser is signed out with its next
    request."""
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
    """By an operator, for a lost phone or a stolen session: ends every session, removes second factors and passkeys,
    ends open one-time links and lifts a lockout. The password stays."""
    # Whoever holds somebody's open session could otherwise remove their second factor with it.
    if actor.kind is ActorKind.PERSON and actor.id == user.id:
        raise Refused("You cannot reset your own sign-in: ask another operator, or use your account pages.")
    require_standing_over(actor=actor, user=user)
    reason_code_require(organization_id=None, scope=Scope.INTERVENTION, code=reason_code, note=note)
    with transaction.atomic():
        stored = note_create(organization_id=None, text=note)
        # Before the authenticators: deleting them would leave passkeys whose end is not on record.
        passkeys_end(actor=actor, at=at, user=user)
        removed, _ = Authenticator.objects.filter(user=user).delete()
        lockouts_lift(user=user)
        links_end(user=user, at=at)
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


def lockouts_lift(*, user: User) -> None:
    AccessAttempt.objects.filter(username=lockout_name(username=user.username)).delete()


def lockout_name(*, username: str) -> str:
    """How the lockout table names whoever tried. What people type as a username is often a password, or somebody
    else's name."""
    return keyed_hash(username, purpose="lockout")


def links_end(*, user: User, at: datetime) -> None:
    """Open one-time links of this person stop working."""
    SignInLink.objects.filter(user=user, ended_at=None).update(
        ended_at=at, ended_how=SignInLink.Ending.WITHDRAWN, mail_due_at=None
    )


def places_or_none(places: Iterable[UUID]) -> list[UUID | None]:
    """Where entries about a person are written: in each of these organizations, in order, or in none."""
    found: list[UUID | None] = [*sorted(places)]
    return found or [None]


def roles_held_in(*, user: User) -> frozenset[UUID]:
    """The organizations where the person has a role now, also those that the caller does not see."""
    with every_tenant():
        return frozenset(RoleGroup.objects.filter(group__user=user).values_list("organization_id", flat=True))


def require_standing_over(*, actor: Actor, user: User) -> None:
    """The actor must operate every organization of the person. An administrator's sign-in is only an administrator's
    business: an operator who knows the password could otherwise remove the second factor."""
    where = roles_held_in(user=user)
    _require_right_over_administrator(actor, user, where)
    if actor.kind in {ActorKind.SYSTEM, ActorKind.CLOCK} or is_administrator(user_id=actor.id):
        return
    # One organization that the actor does not operate is enough to refuse.
    if not where or not where <= actor.organization_ids:
        raise ScopeMissing("They act in more than you operate: ask an administrator of the installation.")


def _require_right_over_administrator(actor: Actor, user: User, where: Iterable[UUID]) -> None:
    """To somebody from elsewhere this says nothing: the caller answers them as for anybody they do not know."""
    if not user.is_superuser or actor.kind in {ActorKind.SYSTEM, ActorKind.CLOCK}:
        return
    if is_administrator(user_id=actor.id) and actor.id != user.id:
        return
    shared = [place for place in where if actor.may_act_in(place)]
    if shared or actor.id == user.id:
        raise AdministratorProtected(
            subject_type="person", subject_id=user.id, organization_id=min(shared, default=None)
        )
