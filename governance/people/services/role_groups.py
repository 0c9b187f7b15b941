"""The role groups of an organization, with their permissions, and its reviewer tiers: create, change, deactivate."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.contrib.auth.models import Group, Permission
from django.db import IntegrityError, transaction

from governance.boundary.services import handle_check, text_check
from governance.ledger.services import ledger_append
from governance.people.rules.roles import (
    AUDIT,
    DECIDE_READINESS,
    OPERATE,
    REVIEW,
    REVIEWER,
    VIEW,
    permissions_of,
    tier_of,
)
from governance.tenancy.models import Organization, OrganizationGroupObjectPermission, ReviewerTier, RoleGroup
from governance.tenancy.selectors import tenant_get
from reasoncodes.base.actors import Actor
from reasoncodes.base.errors import AlreadyExists, NotFound

ALL = (VIEW, OPERATE, REVIEW, AUDIT, DECIDE_READINESS)
CHANGEABLE = frozenset({"label", "description", "active"})


def role_group_ensure(*, organization: Organization, role: str) -> RoleGroup:
    """The organization's group for the role, with its permissions. A tier that nobody has created yet is created with
    it: an identity provider's mapping may name one."""
    existing = RoleGroup.objects.filter(organization=organization, role=role).first()
    return existing or role_groups_create(organization=organization, roles=[role])[0]


def role_groups_create(*, organization: Organization, roles: Sequence[str]) -> list[RoleGroup]:
    """Groups, their object permissions and the tiers they are for, in five statements for any number of roles."""
    permissions = {
        row.codename: row for row in Permission.objects.filter(content_type__app_label="governance", codename__in=ALL)
    }
    groups = Group.objects.bulk_create(Group(name=f"{organization.slug}/{role}") for role in roles)
    OrganizationGroupObjectPermission.objects.bulk_create(
        OrganizationGroupObjectPermission(permission=permissions[name], group=group, content_object=organization)
        for role, group in zip(roles, groups, strict=True)
        for name in permissions_of(role)
    )
    # A tier may be there: it is inserted before its group, so that its unique slug decides about two at once.
    ReviewerTier.objects.bulk_create(
        [
            ReviewerTier(organization=organization, slug=tier, label=tier_label(tier))
            for tier in map(tier_of, roles)
            if tier
        ],
        ignore_conflicts=True,
    )
    return RoleGroup.objects.bulk_create(
        RoleGroup(organization=organization, role=role, group=group) for role, group in zip(roles, groups, strict=True)
    )


def tier_label(slug: str) -> str:
    """What people see until somebody writes a label: `customer_clinician` is "Customer clinician"."""
    return slug.replace("_", " ").replace("-", " ").capitalize()


def review_tier_create(
    *, actor: Actor, at: datetime, organization: Organization, slug: str, label: str, description: str = ""
) -> ReviewerTier:
    """A tier and its group. Nobody is in it: giving a person its role is an authority change."""
    if not actor.may_act_in(organization.id):
        raise NotFound
    _check_words({"label": label, "description": description})
    handle_check(handle=slug, pointer="/slug")
    tier = ReviewerTier(organization=organization, slug=slug, label=label, description=description)
    try:
        with transaction.atomic():
            tier.save(force_insert=True)
            role_group_ensure(organization=organization, role=f"{REVIEWER}{slug}")
            _record(tier, "review_tier.created", actor=actor, at=at)
    # The unique constraint decides: a look-up before the insert would lose the race against a second request.
    except IntegrityError as error:
        raise AlreadyExists("This organization has a reviewer tier with this slug.") from error
    return tier


def review_tier_change(*, actor: Actor, at: datetime, tier_id: UUID, changes: Mapping[str, Any]) -> ReviewerTier:
    """Changes words or activity. The slug never changes: policies, definitions and stored reviews name it.

    Of a tier that is not active nothing new may be asked, and nobody can be given it. Reviews that wait go on being
    decided by the people who have it, and policies and definitions in force keep naming it.
    """
    unknown = set(changes) - CHANGEABLE
    if unknown:
        raise ValueError(f"not changeable: {sorted(unknown)}")
    _check_words(changes)
    with transaction.atomic():
        tier = tenant_get(ReviewerTier, tier_id, lock=True)
        if not actor.may_act_in(tier.organization_id):
            raise NotFound
        changed = {name: value for name, value in changes.items() if getattr(tier, name) != value}
        if not changed:  # no change, so no ledger entry
            return tier
        for name, value in changed.items():
            setattr(tier, name, value)
        tier.save(update_fields=list(changed))
        ended = changed == {"active": False}
        action = "review_tier.deactivated" if ended else "review_tier.changed"
        _record(tier, action, actor=actor, at=at, fields=sorted(changed))
    return tier


def _check_words(words: Mapping[str, Any]) -> None:
    for name in ("label", "description"):
        if words.get(name):
            text_check(text=words[name], pointer=f"/{name}")


def _record(tier: ReviewerTier, action: str, *, actor: Actor, at: datetime, fields: Iterable[str] = ()) -> None:
    # The label is somebody's text and does not enter the ledger; the row is bound to the entry.
    ledger_append(
        action=action,
        organization_id=tier.organization_id,
        subject_type="reviewer_tier",
        subject_id=tier.id,
        actor=actor,
        at=at,
        payload={"slug": tier.slug, "active": tier.active, "fields": list(fields)},
    )
