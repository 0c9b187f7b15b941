"""Modules: register, change, disable, enable; bind service accounts; rotate the signing secret.

Registering, changing and enabling widen authority: a second person confirms them before they come here. Disabling and
binding take something away, so one person is enough.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction

from governance.boundary.services import content_check, handle_check, note_create, path_check
from governance.ledger.rules.entry import canonical_sha256
from governance.ledger.services import ledger_append
from governance.people.models import ServiceAccount
from governance.people.selectors.people import service_account_named
from governance.people.services.binding import service_account_bind
from governance.violations.services import violations_recorded
from reasoncodes.base.actors import Actor
from reasoncodes.base.errors import AlreadyExists, FieldError, InvalidInput, NotFound, WrongState
from reasoncodes.codes import Scope
from reasoncodes.selectors import reason_code_require
from workflows.kinds.registry import kind_table
from workflows.modules.configured import module_salt, module_secret
from workflows.modules.models import Module, ModuleSecret, ModuleVersion
from workflows.modules.rules.terms import operations_complete, terms_problems
from workflows.modules.selectors import module_get, module_secrets_live, module_terms
from workflows.modules.states import ModuleTransport
from workflows.webhooks.services.endpoints import url_problems

TERMS = ("transport", "url", "operations", "publishes")
MOST_MODULES = 200
# The old and the new secret, during the overlap of a rotation.
LIVE_SECRETS = 2


@dataclass(frozen=True, slots=True)
class IssuedModule:
    """The module, and the secret that is shown once; empty if none was made."""

    module: Module
    secret: str = ""


def module_terms_check(*, slug: str, terms: Mapping[str, Any], private_hosts: frozenset[str]) -> dict[str, Any]:
    """The terms with every default written out; raises everything that is wrong with them."""
    unknown = set(terms) - set(TERMS)
    transport, url = terms.get("transport"), terms.get("url", "") or ""
    operations, publishes = terms.get("operations", {}), terms.get("publishes", [])
    found = [FieldError("", "the known fields are: " + ", ".join(TERMS))] if unknown else []
    found += _transport_problems(transport, url, private_hosts)
    problems = terms_problems(slug=slug, operations=operations, publishes=publishes, kinds=kind_table())
    found += [FieldError(pointer, words) for pointer, words in problems]
    if found:
        raise InvalidInput(errors=found)
    handle_check(handle=slug, pointer="/slug")
    content_check(content=operations, pointer="/operations")
    path_check(path=url.partition("://")[2].partition("/")[2], pointer="/url")
    complete = operations_complete(operations)
    published = sorted(set(publishes))
    return {"transport": transport, "url": url, "operations": complete, "publishes": published}


def _transport_problems(transport: Any, url: Any, private_hosts: frozenset[str]) -> list[FieldError]:
    if transport not in list(ModuleTransport):
        return [FieldError("/transport", "one of: " + ", ".join(ModuleTransport))]
    if not isinstance(url, str):
        return [FieldError("/url", "is a text")]
    if transport == ModuleTransport.STREAM:
        return [FieldError("/url", "is only for modules that are called over http")] if url else []
    if "?" in url:
        return [FieldError("/url", "has no query: the paths of operations are added to it", rule="url")]
    return url_problems(url, private_hosts=private_hosts)


def module_register(
    *,
    actor: Actor,
    at: datetime,
    organization_id: UUID,
    slug: str,
    terms: Mapping[str, Any],
    private_hosts: frozenset[str],
) -> IssuedModule:
    if not actor.may_act_in(organization_id):
        raise NotFound
    checked = module_terms_check(slug=slug, terms=terms, private_hosts=private_hosts)
    if Module.objects.filter(organization_id=organization_id)[:MOST_MODULES].count() >= MOST_MODULES:
        raise WrongState(f"An organization has at most {MOST_MODULES} modules.")
    module = Module(organization_id=organization_id, slug=slug, created_at=at, changed_at=at)
    try:
        with transaction.atomic():
            module.save(force_insert=True)
            version = _version_add(module, checked, at=at)
            secret = _secret_make(module, at) if checked["transport"] == ModuleTransport.HTTP else ""
            _record(module, "registered", actor=actor, at=at, payload=_said(version))
    # The unique constraint decides: a look-up before the insert would lose the race against a second request.
    except IntegrityError as error:
        raise AlreadyExists("This organization has a module with this slug.") from error
    return IssuedModule(module, secret)


@violations_recorded
def module_change(
    *, actor: Actor, at: datetime, module_id: UUID, terms: Mapping[str, Any], private_hosts: frozenset[str]
) -> IssuedModule:
    """The next version, with what `terms` names; the rest stays. Published workflows keep the version that they were
    published with, but their calls go to the new address."""
    with transaction.atomic():
        module = _lock(actor, module_id)
        _require_active(module)
        before = module_terms(module=module)
        wanted = terms_merged(before, terms)
        checked = module_terms_check(slug=module.slug, terms=wanted, private_hosts=private_hosts)
        module.version, module.changed_at = module.version + 1, at
        module.save(update_fields=["version", "changed_at"])
        version = _version_add(module, checked, at=at)
        needs = checked["transport"] == ModuleTransport.HTTP
        secret = _secret_make(module, at) if needs and not module_secrets_live(module_id=module.id, at=at) else ""
        _record(module, "changed", actor=actor, at=at, payload=_said(version))
    return IssuedModule(module, secret)


def terms_merged(before: ModuleVersion, terms: Mapping[str, Any]) -> dict[str, Any]:
    """A change to `stream` drops the address, which would have no meaning."""
    merged = {name: getattr(before, name) for name in TERMS} | dict(terms)
    if merged["transport"] == ModuleTransport.STREAM and "url" not in terms:
        merged["url"] = ""
    return merged


@violations_recorded
def module_disable(*, actor: Actor, at: datetime, module_id: UUID, reason_code: str, note: str = "") -> Module:
    """Nothing more is sent to it, its keys are refused, and no workflow that calls it can be published."""
    with transaction.atomic():
        module = _lock(actor, module_id)
        _require_active(module)
        code = reason_code_require(
            organization_id=module.organization_id, scope=Scope.INTERVENTION, code=reason_code, note=note
        ).code
        kept = note_create(organization_id=module.organization_id, text=note)
        module.active, module.disabled_at, module.changed_at = False, at, at
        module.save(update_fields=["active", "disabled_at", "changed_at"])
        payload = {"version": module.version} | ({"note_sha256": kept.sha256} if kept else {})
        _record(module, "disabled", actor=actor, at=at, payload=payload, reason_code=code)
    return module


def module_enable(*, actor: Actor, at: datetime, module_id: UUID) -> Module:
    with transaction.atomic():
        module = _lock(actor, module_id)
        if module.active:
            raise WrongState("The module is active.")
        module.active, module.disabled_at, module.changed_at = True, None, at
        module.save(update_fields=["active", "disabled_at", "changed_at"])
        _record(module, "enabled", actor=actor, at=at, payload={"version": module.version})
    return module


@violations_recorded
def module_secret_rotate(*, actor: Actor, at: datetime, module_id: UUID, overlap: timedelta) -> IssuedModule:
    """A new secret. The old one signs too until the overlap ends, so that the module can change over without
    refusals."""
    with transaction.atomic():
        module = _lock(actor, module_id)
        live = module_secrets_live(module_id=module.id, at=at)
        # Each rotation sets the end of all live secrets anew; without a limit, repeated ones would keep old secrets
        # alive.
        if len(live) >= LIVE_SECRETS:
            raise WrongState("The last rotation's overlap is not over yet: two secrets are in force.")
        if not live:
            raise WrongState("This module is not called over http, so there is no secret.")
        ModuleSecret.objects.filter(id__in=[one.id for one in live]).update(ends_at=at + overlap)
        ModuleSecret.objects.filter(module=module, ends_at__lte=at).delete()
        secret = _secret_make(module, at)
        said = {"overlap_seconds": int(overlap.total_seconds())}
        _record(module, "secret_rotated", actor=actor, at=at, payload=said)
    return IssuedModule(module, secret)


@violations_recorded
def module_account_bind(*, actor: Actor, at: datetime, module_id: UUID, account: str) -> ServiceAccount:
    """From the next request on the account's keys can do only what the module may. `account`: its id or slug."""
    module = module_get(module_id=module_id)
    if not actor.may_act_in(module.organization_id):
        raise NotFound
    found = service_account_named(organization_id=module.organization_id, text=account)
    if found is None:
        raise InvalidInput(errors=[FieldError("/service_account", "is no service account of this organization")])
    return service_account_bind(actor=actor, at=at, service_account_id=found.id, module=module.slug)


def module_check_record(*, actor: Actor, at: datetime, module_id: UUID, report: Mapping[str, Any]) -> None:
    """Puts a report of the conformance kit on the record: which version, and which rules it broke."""
    with transaction.atomic():
        module = _lock(actor, module_id)
        broken = [one["probe"] for one in report["findings"] if not one["ok"]]
        payload = {
            "version": module.version,
            "form": report["form"],
            "conforms": report["conforms"],
            "effects_counted": report["effects_counted"],
            "rules": len(report["findings"]),
            "broken": broken,
            "report_sha256": canonical_sha256(dict(report)),
        }
        _record(module, "checked", actor=actor, at=at, payload=payload)


def _lock(actor: Actor, module_id: UUID) -> Module:
    module = module_get(module_id=module_id, lock=True)
    if not actor.may_act_in(module.organization_id):
        raise NotFound
    return module


def _require_active(module: Module) -> None:
    if not module.active:
        raise WrongState("The module is disabled. Two people enable it first.")


def _version_add(module: Module, terms: Mapping[str, Any], *, at: datetime) -> ModuleVersion:
    version = ModuleVersion(module=module, number=module.version, created_at=at, **terms)
    version.save(force_insert=True)
    return version


def _secret_make(module: Module, at: datetime) -> str:
    salt = module_salt()
    ModuleSecret(module=module, salt=salt, created_at=at).save(force_insert=True)
    return module_secret(module.id, salt)


def _said(version: ModuleVersion) -> dict[str, Any]:
    """What the ledger says: names and effects; the address and the schemas by their hash, because a path may contain a
    secret."""
    return {
        "version": version.number,
        "transport": version.transport,
        "url_sha256": sha256(version.url.encode()).hexdigest() if version.url else None,
        "effects": {name: one["effect"] for name, one in version.operations.items()},
        "operations_sha256": canonical_sha256(version.operations),
        "publishes": list(version.publishes),
    }


def _record(
    module: Module, what: str, *, actor: Actor, at: datetime, payload: dict[str, Any], reason_code: str = ""
) -> None:
    ledger_append(
        action=f"module.{what}",
        organization_id=module.organization_id,
        subject_type="module",
        subject_id=module.id,
        actor=actor,
        at=at,
        payload={"slug": module.slug} | payload,
        reason_code=reason_code,
    )
