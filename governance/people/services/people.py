"""People: create them with a password that they change, or none; end their access when they leave."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from allauth.mfa.models import Authenticator
from axes.models import AccessAttempt
from django.contrib.auth.models import Group, Permission
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from governance.boundary.services import note_create
from governance.ledger.services import ledger_append, person_commitment
from governance.people.models import User
from governance.people.rules.roles import AUDIT, DECIDE_READINESS, OPERATE, REVIEW, VIEW, permissions_of
from governance.people.selectors import session_of, sessions_of
from governance.retention.selectors.subjects import person_organizations
from governance.sql.send_lock import send_lock_exclude
from governance.tenancy.models import Organization, OrganizationGroupObjectPermission, RoleGroup
from reasoncodes.base.actors import Actor
from reasoncodes.base.errors import AlreadyExists, FieldError, InvalidInput, NotFound, ScopeMissing, WrongState
from reasoncodes.base.tenancy import every_tenant
from reasoncodes.codes import Scope
from reasoncodes.selectors import reason_code_require


def person_create(
    *,
    actor: Actor,
    at: datetime,
    username: str,
    password: str | None = None,
    is_staff: bool = False,
    email: str = "",
) -> User:
    """Nothing about the person enters the ledger but the fact and a salted commitment."""
    user = User(username=username, email=email, is_staff=is_staff)
    if password is not None:
        try:
            validate_password(password, user)
        except ValidationError as error:
            raise InvalidInput(errors=[FieldError("/password", message) for message in error.messages]) from error
        user.set_password(password)
    else:
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
    except IntegrityError as error:
        raise AlreadyExists("A person with this username exists.") from error
    return user


def person_deactivate(*, actor: Actor, at: datetime, user_id: UUID, reason_code: str, note: str = "") -> User:
    """Their sessions and keys to the console end with the commit; roles go. Under the send lock and their row's lock:
    what they released is not sent afterwards, and no vote of theirs commits later."""
    reason_code_require(organization_id=None, scope=Scope.INTERVENTION, code=reason_code, note=note)
    with transaction.atomic():
        send_lock_exclude()
        user = User.objects.select_for_update().filter(id=user_id).first()
        places = person_organizations(user=user) if user else set()
        if user is None or not places or not all(actor.may_act_in(place) for place in places):
            raise NotFound
        if not user.is_active:
            raise WrongState("This person has no access already.")
        stored = note_create(organization_id=None, text=note)
        user.groups.clear()
        user.is_active = False
        user.set_unusable_password()  # the hash signs the sessions: all of them end
        user.save(update_fields=["is_active", "password"])
        for place in sorted(places):
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
                },
                reason_code=reason_code,
            )
    return user


ALL = (VIEW, OPERATE, REVIEW, AUDIT, DECIDE_READINESS)


def _role_group_ensure(*, organization: Organization, role: str) -> RoleGroup:
    """The organization's group for the role, with its permissions; made on first use (tiers can be added later)."""
    existing = RoleGroup.objects.filter(organization=organization, role=role).first()
    return existing or role_groups_create(organization=organization, roles=[role])[0]


def role_groups_create(*, organization: Organization, roles: Sequence[str]) -> list[RoleGroup]:
    """Groups and their object permissions, four statements however many roles."""
    permissions = {
        row.codename: row for row in Permission.objects.filter(content_type__app_label="governance", codename__in=ALL)
    }
    groups = Group.objects.bulk_create(Group(name=f"{organization.slug}/{role}") for role in roles)
    OrganizationGroupObjectPermission.objects.bulk_create(
        OrganizationGroupObjectPermission(permission=permissions[name], group=group, content_object=organization)
        for role, group in zip(roles, groups, strict=True)
        for name in permissions_of(role)
    )
    return RoleGroup.objects.bulk_create(
        RoleGroup(organization=organization, role=role, group=group) for role, group in zip(roles, groups, strict=True)
    )


def person_role_give(*, actor: Actor, at: datetime, user: User, organization: Organization, role: str) -> None:
    _require_standing(actor, organization)
    with transaction.atomic():
        group = _role_group_ensure(organization=organization, role=role).group
        if user.groups.filter(id=group.id).exists():
            return
        user.groups.add(group)
        _record("person.role_given", actor=actor, at=at, user=user, organization=organization, role=role)


def person_role_take(*, actor: Actor, at: datetime, user: User, organization: Organization, role: str) -> None:
    """Under the send lock: what this person released is not sent once the role is gone."""
    _require_standing(actor, organization)
    with transaction.atomic():
        send_lock_exclude()
        group = _role_group_ensure(organization=organization, role=role).group
        if not user.groups.filter(id=group.id).exists():
            return
        user.groups.remove(group)
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
    _require_standing_over(actor, user)
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


def _require_standing_over(actor: Actor, user: User) -> None:
    """Whoever operates every organization of the person. An administrator's sign-in is a matter for administrators:
    otherwise an operator with their password could take their second factor away."""
    with every_tenant():
        where = frozenset(RoleGroup.objects.filter(group__user=user).values_list("organization_id", flat=True))
    administrator = actor.id is not None and User.objects.filter(id=actor.id, is_superuser=True).exists()
    if not administrator and (user.is_superuser or not where or not where <= actor.organization_ids):
        raise ScopeMissing("They act in more than you operate: ask an administrator of the installation.")
