"""Binds a service account to a registered module, and releases it. A bound account's keys may publish only that
module's events, and answer only its steps.

Binding takes something away, so one person is enough. Releasing gives it back: two people confirm it before it comes
here.
"""

from datetime import datetime
from uuid import UUID

from django.db import transaction

from governance.ledger.services import ledger_append
from governance.people.models import ServiceAccount
from governance.tenancy.selectors import tenant_get
from reasoncodes.base.actors import Actor
from reasoncodes.base.errors import NotFound, WrongState


def service_account_bind(*, actor: Actor, at: datetime, service_account_id: UUID, module: str) -> ServiceAccount:
    with transaction.atomic():
        account = _account_lock(actor, service_account_id)
        if account.internal:
            raise WrongState("This account is a part of Holdpoint itself; it answers for no module.")
        if account.module and account.module != module:
            raise WrongState("This account is bound to another module. Two people release it first.")
        if not account.module:
            account.module = module
            _write(account, "service_account.module_bound", module, actor=actor, at=at)
    return account


def service_account_release(*, actor: Actor, at: datetime, service_account_id: UUID, module: str) -> ServiceAccount:
    with transaction.atomic():
        account = _account_lock(actor, service_account_id)
        if account.module != module:
            raise WrongState("This account is not bound to the module.")
        account.module = ""
        _write(account, "service_account.module_released", module, actor=actor, at=at)
    return account


def _account_lock(actor: Actor, service_account_id: UUID) -> ServiceAccount:
    # Two people at once: the second one waits and sees what the first one did.
    account = tenant_get(ServiceAccount, service_account_id, lock=True)
    if not actor.may_act_in(account.organization_id):
        raise NotFound
    return account


def _write(account: ServiceAccount, action: str, module: str, *, actor: Actor, at: datetime) -> None:
    account.save(update_fields=["module"])
    ledger_append(
        action=action,
        organization_id=account.organization_id,
        subject_type="service_account",
        subject_id=account.id,
        actor=actor,
        at=at,
        payload={"slug": account.slug, "module": module},
    )
