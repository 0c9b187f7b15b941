"""The acts of two people about modules: register one; change one, enable it, or release an account from it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from governance.authority.errors import ProposalOutdated
from governance.authority.hooks import Applied, Prepared
from governance.authority.models import AuthorityChange
from governance.authority.services.shapes import flag_of, only, text_of
from governance.people.selectors.people import service_account_named
from governance.people.services.binding import service_account_release
from governance.tenancy.models import Organization
from reasoncodes.base.actors import Actor
from reasoncodes.base.errors import AlreadyExists, FieldError, InvalidInput, NotFound, WrongState
from reasoncodes.base.ids import UUID_TEXT
from workflows.modules.models import Module
from workflows.modules.selectors import module_named, module_terms
from workflows.modules.services.registry import (
    TERMS,
    module_change,
    module_enable,
    module_register,
    module_terms_check,
    terms_merged,
)

PrivateHosts = Callable[[], frozenset[str]]


@dataclass(frozen=True, slots=True)
class ModuleRegister:
    """`subject`: the slug. `details`: `transport`, `url`, `operations`, `publishes`. The secret of a module that is
    called over http is made when it comes into force, and shown to the person who confirms."""

    private_hosts: PrivateHosts

    def prepare(
        self, *, actor: Actor, at: datetime, organization: Organization, subject: str, details: Mapping[str, Any]
    ) -> Prepared:
        only(details, *TERMS)
        if module_named(organization_id=organization.id, slug=subject) is not None:
            raise AlreadyExists("This organization has a module with this slug.")
        terms = _checked(subject, details, self.private_hosts())
        return Prepared(subject, terms, after={"slug": subject, **terms}, loosens=True)

    def excluded(self, *, change: AuthorityChange) -> dict[UUID, str]:
        return {}

    def apply(self, *, actor: Actor, at: datetime, change: AuthorityChange) -> Applied:
        made = module_register(
            actor=actor,
            at=at,
            organization_id=change.organization_id,
            slug=change.subject,
            terms=change.details,
            private_hosts=self.private_hosts(),
        )
        return Applied({"module": str(made.module.id)}, made=made, once=made.secret)


@dataclass(frozen=True, slots=True)
class ModuleChange:
    """`subject`: the module, by id or slug. `details`: the terms that change; or `enable`; or `release`, a service
    account that shall no longer be bound to it, by id or slug."""

    private_hosts: PrivateHosts

    def prepare(
        self, *, actor: Actor, at: datetime, organization: Organization, subject: str, details: Mapping[str, Any]
    ) -> Prepared:
        only(details, *TERMS, "enable", "release")
        module = _module(organization, subject)
        before = _shown(module)
        if "release" in details:
            only(details, "release")
            account = _account(organization, module, text_of(details, "release", longest=64))
            said = {"release": str(account.id)}
            return Prepared(str(module.id), said, before | {"account": account.slug}, before | {"account": None}, True)
        if "enable" in details:
            only(details, "enable")
            if not flag_of(details, "enable", default=False) or module.active:
                raise WrongState("Only a disabled module can be enabled.")
            return Prepared(str(module.id), {"enable": True}, before, before | {"active": True}, True)
        if not details:
            raise InvalidInput(errors=[FieldError("/details", "name what to change: " + ", ".join(TERMS))])
        if not module.active:
            raise WrongState("The module is disabled. Two people enable it first.")
        merged = terms_merged(module_terms(module=module), details)
        terms = _checked(module.slug, merged, self.private_hosts())
        after = before | terms | {"version": module.version + 1}
        return Prepared(str(module.id), {"terms": terms}, before, after, loosens=True)

    def excluded(self, *, change: AuthorityChange) -> dict[UUID, str]:
        return {}

    def apply(self, *, actor: Actor, at: datetime, change: AuthorityChange) -> Applied:
        module, asked = _module(change.organization, change.subject), change.details
        if "release" in asked:
            account_id = UUID(asked["release"])
            service_account_release(actor=actor, at=at, service_account_id=account_id, module=module.slug)
            return Applied({"module": str(module.id), "service_account": asked["release"]}, made=module)
        # What the second person read as "before" must be what is replaced.
        if _shown(module) != change.before:
            raise ProposalOutdated
        if "enable" in asked:
            return Applied({"module": str(module.id)}, made=module_enable(actor=actor, at=at, module_id=module.id))
        made = module_change(
            actor=actor, at=at, module_id=module.id, terms=asked["terms"], private_hosts=self.private_hosts()
        )
        return Applied({"module": str(module.id), "version": made.module.version}, made=made, once=made.secret)


def _checked(slug: str, terms: Mapping[str, Any], private_hosts: frozenset[str]) -> dict[str, Any]:
    """With pointers into the proposal's details."""
    try:
        return module_terms_check(slug=slug, terms=terms, private_hosts=private_hosts)
    except InvalidInput as refusal:
        moved = [FieldError(_at(one.pointer), one.message, rule=one.rule) for one in refusal.errors]
        raise InvalidInput(errors=moved) from refusal


def _at(pointer: str) -> str:
    return "/subject" if pointer == "/slug" else f"/details{pointer}"


def _module(organization: Organization, subject: str) -> Module:
    rows = Module.objects.filter(organization_id=organization.id)
    found = (rows.filter(id=subject) if UUID_TEXT.fullmatch(subject) else rows.filter(slug=subject)).first()
    if found is None:
        raise NotFound
    return found


def _account(organization: Organization, module: Module, text: str) -> Any:
    found = service_account_named(organization_id=organization.id, text=text)
    if found is None or found.module != module.slug:
        raise InvalidInput(errors=[FieldError("/details/release", "is no service account that is bound to the module")])
    return found


def _shown(module: Module) -> dict[str, Any]:
    """What the two people compare."""
    terms = module_terms(module=module)
    named = {name: getattr(terms, name) for name in TERMS}
    return {"slug": module.slug, "active": module.active, "version": module.version, **named}
