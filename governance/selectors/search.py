"""Finding by name: slugs of what an organization set up, and the readable beginning of a key. Exact and bounded."""

from uuid import UUID

from django.db.models import Q, QuerySet

from governance.models import ApiKey, Contract, Organization, Policy, ServiceAccount
from governance.selectors.choices import organization_ids
from reasoncodes.tenancy import current_scope

FOUND = 20


def ids_in_scope() -> frozenset[UUID]:
    """Every organization that may be looked at now, by id."""
    scope = current_scope()
    return organization_ids() if scope.everything else scope.organization_ids


def by_organization() -> Q:
    """Said aloud for whoever sees everything: an index that begins with the organization is of no use without."""
    return Q(organization_id__in=ids_in_scope()) if current_scope().everything else Q()


def contracts_by_slug(*, slug: str) -> QuerySet[Contract]:
    rows = Contract.objects.filter(by_organization(), slug=slug).select_related("organization")
    return rows.order_by("-version")[:FOUND]


def policies_by_slug(*, slug: str) -> QuerySet[Policy]:
    rows = Policy.objects.filter(by_organization(), slug=slug).select_related("organization")
    return rows.order_by("-version")[:FOUND]


def accounts_by_slug(*, slug: str) -> QuerySet[ServiceAccount]:
    return ServiceAccount.objects.filter(by_organization(), slug=slug).select_related("organization")[:FOUND]


def organizations_by_slug(*, slug: str) -> QuerySet[Organization]:
    return Organization.objects.filter(slug=slug)[:FOUND]


def keys_by_prefix(*, prefix: str) -> QuerySet[ApiKey]:
    return ApiKey.objects.filter(prefix=prefix).select_related("service_account__organization")[:FOUND]
