"""Reading for forms of the console: what a person may choose from. Everything is inside the tenant scope."""

from collections.abc import Collection
from typing import Any, TypeVar
from uuid import UUID

from django.contrib.auth.models import Group
from django.db.models import Model, OuterRef, Prefetch, QuerySet, Subquery

from governance.models import Organization, PersonReference, Product, RoleGroup, User
from governance.selectors.policy import policy_list
from reasoncodes.tenancy import every_tenant

SUGGESTED = 200
M = TypeVar("M", bound=Model)


def organization_ids() -> frozenset[UUID]:
    """All of the installation's, for its administrator."""
    with every_tenant():
        return frozenset(Organization.objects.values_list("id", flat=True))


def organization_choices(*, ids: Collection[UUID]) -> QuerySet[Organization]:
    return Organization.objects.filter(id__in=ids)


def product_choices(*, organizations: QuerySet[Organization]) -> QuerySet[Product]:
    return Product.objects.filter(organization__in=organizations).select_related("organization")


def policy_suggestions(*, organization_id: UUID | None = None) -> list[str]:
    """Slugs of active policies."""
    rows = policy_list(state="active")
    rows = rows if organization_id is None else rows.filter(organization_id=organization_id)
    return sorted(set(rows.values_list("slug", flat=True)[:SUGGESTED]))


def people_in_scope() -> QuerySet[User]:
    """People with a role in an organization of the current scope; nobody learns who works for the others."""
    return User.objects.filter(groups__role_group__in=RoleGroup.objects.all()).distinct()


def roles_in_scope() -> QuerySet[RoleGroup]:
    return RoleGroup.objects.select_related("organization").order_by("organization__slug", "role")


def people_with_roles(*, people: QuerySet[User]) -> QuerySet[User]:
    """Each with the groups of the current scope, and no others."""
    shown = Group.objects.filter(role_group__in=RoleGroup.objects.all())
    return people.prefetch_related(Prefetch("groups", queryset=shown)).order_by("username")


def with_names(*, rows: QuerySet[M]) -> QuerySet[M]:
    """Of rows with an `actor_ref`. One query for the page, not one per row: each has `username` where its person's
    reference still exists."""
    person = PersonReference.objects.filter(commitment=OuterRef("actor_ref")).values("user__username")
    named: QuerySet[Any] = rows.annotate(username=Subquery(person[:1]))
    return named
