"""People's roles: membership of the organization's groups, which carry the object permissions."""

from collections.abc import Sequence
from datetime import datetime

from django.contrib.auth.models import Group, Permission
from django.db import transaction

from governance.gate import gate_shut
from governance.ledger.append import ledger_append, person_commitment
from governance.models import Organization, OrganizationGroupObjectPermission, RoleGroup, User
from governance.roles import AUDIT, DECIDE_READINESS, OPERATE, REVIEW, VIEW, permissions_of
from reasoncodes.actors import Actor
from reasoncodes.errors import NotFound

ALL = (VIEW, OPERATE, REVIEW, AUDIT, DECIDE_READINESS)


def role_group_ensure(*, organization: Organization, role: str) -> RoleGroup:
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
        group = role_group_ensure(organization=organization, role=role).group
        if user.groups.filter(id=group.id).exists():
            return
        user.groups.add(group)
        _record("person.role_given", actor=actor, at=at, user=user, organization=organization, role=role)


def person_role_take(*, actor: Actor, at: datetime, user: User, organization: Organization, role: str) -> None:
    """Behind the gate: what this person released is not sent once the role is gone."""
    _require_standing(actor, organization)
    with transaction.atomic():
        gate_shut()
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
