"""Reads one row of the current tenant scope, or raises 404. Somebody else's row is a violation; the caller sees the
same 404. Also an organization's tiers and products, which organization runs the installation, and whether there is
any."""

from typing import TypeVar
from uuid import UUID

from django.db.models import Model, QuerySet

from governance.tenancy.models import Organization, Product, ReviewerTier
from governance.violations.errors import CrossTenant
from reasoncodes.base.errors import NotFound
from reasoncodes.base.tenancy import every_tenant

M = TypeVar("M", bound=Model)


def tenant_get(model: type[M], row_id: UUID, *, lock: bool = False) -> M:
    """With `lock`, the row is locked FOR NO KEY UPDATE."""
    rows = model._default_manager.filter(pk=row_id)
    # NO KEY: inserts of rows that refer to this one need not wait. `of` self: rows of tables that
    # the tenant filter joins stay unlocked.
    row = (rows.select_for_update(no_key=True, of=("self",)) if lock else rows).first()
    if row is not None:
        return row
    # Only to tell "does not exist" from "belongs to somebody else", which is recorded. Nothing of the row is returned.
    with every_tenant():
        if model._default_manager.filter(pk=row_id).exists():
            raise CrossTenant(subject_type=str(model._meta.model_name), subject_id=row_id)
    raise NotFound


def review_tier_list(*, slug: str | None = None, active: bool | None = None) -> QuerySet[ReviewerTier]:
    rows = ReviewerTier.objects.all()
    if slug is not None:
        rows = rows.filter(slug=slug)
    return rows if active is None else rows.filter(active=active)


def product_list(*, slug: str | None = None) -> QuerySet[Product]:
    rows = Product.objects.all()
    return rows if slug is None else rows.filter(slug=slug)


def organization_exists() -> bool:
    """Whether the installation has any organization yet."""
    with every_tenant():
        return Organization.objects.exists()


def organization_at_home() -> Organization | None:
    """The organization that runs the installation, if the current scope has it."""
    return Organization.objects.filter(home=True).first()
