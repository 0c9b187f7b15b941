"""Service accounts: create, suspend, reinstate."""

from datetime import datetime
from uuid import UUID

from django.db import IntegrityError, transaction

from governance.ledger.append import ledger_append
from governance.models import Organization, ServiceAccount, User
from governance.throttling import strikes_forget
from reasoncodes.actors import SYSTEM, Actor
from reasoncodes.errors import AlreadyExists, NotFound


def service_account_create(
    *,
    actor: Actor,
    at: datetime,
    organization: Organization,
    slug: str,
    description: str = "",
    responsible: User | None = None,
) -> ServiceAccount:
    if not actor.may_act_in(organization.id):
        raise NotFound
    account = ServiceAccount(organization=organization, slug=slug, description=description, responsible=responsible)
    try:
        with transaction.atomic():
            account.save(force_insert=True)
            _record(account, "service_account.created", actor=actor, at=at)
    except IntegrityError as error:
        raise AlreadyExists("This organization has a service account with this slug.") from error
    return account


def service_account_ensure(*, at: datetime, organization: Organization, slug: str, description: str) -> ServiceAccount:
    """The account that a part of Holdpoint itself acts with in this organization; made on its first use."""
    own = ServiceAccount.objects.filter(organization=organization, slug=slug)
    try:
        return own.first() or service_account_create(
            actor=SYSTEM, at=at, organization=organization, slug=slug, description=description
        )
    except AlreadyExists:  # another transaction made it in between
        return own.get()


def service_account_suspend(
    *, actor: Actor, at: datetime, service_account_id: UUID, reason_code: str
) -> ServiceAccount:
    """Its keys are refused from the next request on."""
    with transaction.atomic():
        account = _lock(actor, service_account_id)
        if account.status != ServiceAccount.Status.SUSPENDED:
            account.status = ServiceAccount.Status.SUSPENDED
            account.suspended_reason_code = reason_code
            account.save(update_fields=["status", "suspended_reason_code"])
            _record(account, "service_account.suspended", actor=actor, at=at, reason_code=reason_code)
    return account


def service_account_reinstate(*, actor: Actor, at: datetime, service_account_id: UUID) -> ServiceAccount:
    with transaction.atomic():
        account = _lock(actor, service_account_id)
        if account.status != ServiceAccount.Status.ACTIVE:
            account.status = ServiceAccount.Status.ACTIVE
            account.suspended_reason_code = ""
            account.save(update_fields=["status", "suspended_reason_code"])
            _record(account, "service_account.reinstated", actor=actor, at=at)
            # A clean slate: with the old strikes the next mistake would suspend it again.
            transaction.on_commit(lambda: strikes_forget(subject=str(account.id)))
    return account


def _lock(actor: Actor, service_account_id: UUID) -> ServiceAccount:
    account = ServiceAccount.objects.select_for_update(no_key=True).filter(id=service_account_id).first()
    if account is None or not actor.may_act_in(account.organization_id):
        raise NotFound
    return account


def _record(account: ServiceAccount, action: str, *, actor: Actor, at: datetime, reason_code: str = "") -> None:
    ledger_append(
        action=action,
        organization_id=account.organization_id,
        subject_type="service_account",
        subject_id=account.id,
        actor=actor,
        at=at,
        payload={"slug": account.slug},
        reason_code=reason_code,
    )
