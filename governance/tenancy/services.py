"""Organizations (create with their role groups, change settings) and products (create, rename)."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction

from governance.boundary.services import handle_check, text_check
from governance.ledger.services import ledger_append
from governance.people.rules.roles import PERMISSIONS_OF_ROLE
from governance.people.services.role_groups import role_groups_create
from governance.tenancy.models import Organization, Product
from governance.tenancy.selectors import organization_exists, tenant_get
from reasoncodes.base.actors import Actor
from reasoncodes.base.errors import AlreadyExists, NotFound
from reasoncodes.base.tenancy import tenant_scope

SETTINGS = frozenset(
    {
        "name",
        "regions",
        "capacity_units",
        "max_concurrency",
        "max_open_holds",
        "max_runs_per_min",
        "max_writes_per_run",
        "status",
    }
)


def organization_create(
    *,
    actor: Actor,
    at: datetime,
    slug: str,
    name: str,
    regions: list[str],
    settings: Mapping[str, Any] | None = None,
) -> Organization:
    """An organization and one group per role, so that people can be given roles at once."""
    organization = Organization(slug=slug, name=name, regions=regions, **dict(settings or {}))
    try:
        # The actor's scope cannot contain an organization that did not exist when the request began.
        with tenant_scope([organization.id]), transaction.atomic():
            # The first organization of an installation is the one that runs it. Two first ones at once: the unique
            # index lets one of them in.
            organization.home = not organization_exists()
            organization.save(force_insert=True)
            role_groups_create(organization=organization, roles=list(PERMISSIONS_OF_ROLE))
            ledger_append(
                action="organization.created",
                organization_id=organization.id,
                subject_type="organization",
                subject_id=organization.id,
                actor=actor,
                at=at,
                payload={"slug": slug, "regions": regions},
            )
    # The unique slug decides: a look-up before the insert would lose the race against a second request.
    except IntegrityError as error:
        raise AlreadyExists("An organization with this slug exists.") from error
    return organization


def organization_change(
    *, actor: Actor, at: datetime, organization_id: UUID, changes: Mapping[str, Any]
) -> Organization:
    """Changes settings. The slug never changes: it is in callers' addresses."""
    unknown = set(changes) - SETTINGS
    if unknown:
        raise ValueError(f"not changeable: {sorted(unknown)}")
    with tenant_scope([organization_id]), transaction.atomic():
        # Two changes at once run one after the other, so that ledger entries have the order of the changes. NO KEY:
        # intake inserts rows that refer to the organization and must not wait.
        organization = Organization.objects.select_for_update(no_key=True).filter(id=organization_id).first()
        if organization is None or not actor.may_act_in(organization_id):
            raise NotFound
        for field, value in changes.items():
            setattr(organization, field, value)
        organization.save(update_fields=list(changes))
        ledger_append(
            action="organization.changed",
            organization_id=organization.id,
            subject_type="organization",
            subject_id=organization.id,
            actor=actor,
            at=at,
            # The name is free text of a customer and does not enter the ledger.
            payload={key: value for key, value in changes.items() if key != "name"},
        )
    return organization


def product_create(*, actor: Actor, at: datetime, organization: Organization, slug: str, name: str) -> Product:
    if not actor.may_act_in(organization.id):
        raise NotFound
    text_check(text=name, pointer="/name")
    handle_check(handle=slug, pointer="/slug")
    product = Product(organization=organization, slug=slug, name=name)
    try:
        with transaction.atomic():
            product.save(force_insert=True)
            ledger_append(
                action="product.created",
                organization_id=organization.id,
                subject_type="product",
                subject_id=product.id,
                actor=actor,
                at=at,
                payload={"slug": slug},
            )
    except IntegrityError as error:
        raise AlreadyExists("This organization has a product with this slug.") from error
    return product


def product_change(*, actor: Actor, at: datetime, product_id: UUID, name: str | None = None) -> Product:
    """Another name; without one nothing changes. The slug never changes: definitions are found by it."""
    if name is not None:
        text_check(text=name, pointer="/name")
    with transaction.atomic():
        product = tenant_get(Product, product_id, lock=True)
        if not actor.may_act_in(product.organization_id):
            raise NotFound
        if name is None or product.name == name:  # no change, so no ledger entry
            return product
        product.name = name
        product.save(update_fields=["name"])
        ledger_append(
            action="product.changed",
            organization_id=product.organization_id,
            subject_type="product",
            subject_id=product.id,
            actor=actor,
            at=at,
            payload={"fields": ["name"]},
        )
    return product
