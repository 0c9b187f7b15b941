"""People's roles: membership of the organization's groups, which carry the object permissions."""

from datetime import datetime

from django.contrib.auth.models import Group
from django.db import transaction
from guardian.shortcuts import assign_perm

from governance.ledger.append import ledger_append, person_commitment
from governance.models import Organization, RoleGroup, User
from governance.roles import permissions_of
from reasoncodes.actors import Actor
from reasoncodes.errors import NotFound


def role_group_ensure(*, organization: Organization, role: str) -> RoleGroup:
    """The organization's group for the role, with its permissions; made on first use (tiers can be added later)."""
    permissions = permissions_of(role)
    existing = RoleGroup.objects.filter(organization=organization, role=role).first()
    if existing is not None:
        return existing
    group = Group.objects.create(name=f"{organization.slug}/{role}")
    for permission in permissions:
        assign_perm(f"governance.{permission}", group, organization)
    return RoleGroup.objects.create(organization=organization, role=role, group=group)


def person_role_give(*, actor: Actor, at: datetime, user: User, organization: Organization, role: str) -> None:
    _require_standing(actor, organization)
    with transaction.atomic():
        group = role_group_ensure(organization=organization, role=role).group
        if user.groups.filter(id=group.id).exists():
            return
        user.groups.add(group)
        _record("person.role_given", actor=actor, at=at, user=user, organization=organization, role=role)


def person_role_take(*, actor: Actor, at: datetime, user: User, organization: Organization, role: str) -> None:
    _require_standing(actor, organization)
    with transaction.atomic():
        group = role_group_ensure(organization=organization, role=role).group
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
