"""Shutdowns: engage with a reason, rehearse, release by a second person. A shutdown takes effect with the next request.
Deny mode is also a shutdown; it is engaged and ended by `governance/sealing`."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django_fsm import TransitionNotAllowed

from governance.authorship.selectors import authors_of
from governance.authorship.services import authorship_add, second_person_require
from governance.authorship.states import WorkKind
from governance.boundary.services import note_create
from governance.contracts.states import AdapterName
from governance.enforcement.sql import contracts_covered, send_lock_exclude
from governance.integrity.states import RECORD_DIFFERS
from governance.ledger.services import actor_reference, ledger_append
from governance.people.rules.roles import OPERATE
from governance.people.selectors.people import others_may, owner_groups_of
from governance.regions.rules import load_profiles
from governance.sealing.states import LEDGER_INCONSISTENT
from governance.shutdown.errors import GlassUnbroken
from governance.shutdown.models import BreakGlass, Shutdown
from governance.shutdown.selectors import shutdown_preview
from governance.shutdown.states import ShutdownScope, ShutdownState
from governance.tenancy.models import Organization
from governance.tenancy.selectors import tenant_get
from governance.violations.services import violations_recorded
from reasoncodes.base.actors import SYSTEM, Actor, ActorKind
from reasoncodes.base.errors import FieldError, InvalidInput, NotFound, ScopeMissing, WrongState
from reasoncodes.base.tenancy import every_tenant
from reasoncodes.codes import Scope
from reasoncodes.selectors import reason_code_require

# After that the first owner's word no longer counts: the reason for it may be gone.
BREAK_GLASS_LASTS = timedelta(days=1)
INSTALLATION_WIDE = frozenset({ShutdownScope.GLOBAL, ShutdownScope.REGION})


def shutdown_engage(
    *,
    actor: Actor,
    at: datetime,
    scope: ShutdownScope,
    organization_id: UUID | None,
    target: str = "",
    reason_code: str,
    note: str = "",
    drill: bool = False,
    installation: bool = False,
) -> Shutdown:
    """Stops everything in the scope. `installation`: the entry point has checked that the actor administers the
    installation, which global and regional shutdowns need."""
    organization_id, target = _resolve(actor, scope, organization_id, target, installation=installation)
    with transaction.atomic():
        # First, and exclusively: waits for intents that are being written. Without it an intent that read "nothing
        # engaged" could commit after the person has been told that everything is stopped.
        send_lock_exclude()
        reason_code_require(organization_id=organization_id, scope=Scope.INTERVENTION, code=reason_code, note=note)
        stored = note_create(organization_id=organization_id, text=note)
        shutdown = Shutdown(
            scope=scope,
            organization_id=organization_id,
            target=target,
            drill=drill,
            reason_code=reason_code,
            note=stored,
            preview=shutdown_preview(scope=scope, organization_id=organization_id, target=target),
            engaged_by_kind=actor.kind.value,
            engaged_by_ref=actor_reference(actor),
            engaged_at=at,
        )
        shutdown.save(force_insert=True)
        # With the person behind a service's key: they must not release it in their own session.
        authorship_add(
            actor=actor, at=at, organization_id=organization_id, kind=WorkKind.SHUTDOWN, subject_ids=[shutdown.id]
        )
        _record(shutdown, "shutdown.rehearsed" if drill else "shutdown.engaged", actor=actor, at=at)
    return shutdown


@violations_recorded
def shutdown_release(
    *, actor: Actor, at: datetime, shutdown_id: UUID, note: str = "", installation: bool = False
) -> Shutdown:
    """Releases a shutdown. Not by the person who engaged it, unless it was a drill."""
    with transaction.atomic():
        # Locked, then checked: of two releases at once, the second one finds it released. The send lock is not needed,
        # because an intent that still sees the shutdown is refused, which does no harm.
        shutdown = tenant_get(Shutdown, shutdown_id, lock=True)
        if not (installation or actor.may_act_in(shutdown.organization_id)):
            raise NotFound
        if _is_denial(shutdown):
            raise WrongState("The record differs from what was sealed: this ends when its faults are confirmed.")
        if not shutdown.drill:
            second_person_require(
                actor=actor,
                kind=WorkKind.SHUTDOWN,
                subject_id=shutdown.id,
                started_ref=shutdown.engaged_by_ref,
                organization_id=shutdown.organization_id,
            )
        try:
            shutdown.release()
        except TransitionNotAllowed as error:
            raise WrongState("This shutdown is released already.") from error
        # The database refuses a release by the same person, drill or not, so an own drill names nobody.
        own_drill = shutdown.drill and shutdown.engaged_by_ref == actor_reference(actor)
        shutdown.released_by_ref = "" if own_drill else actor_reference(actor)
        shutdown.released_at = at
        shutdown.release_note = note_create(organization_id=shutdown.organization_id, text=note)
        shutdown.save(update_fields=["state", "released_by_ref", "released_at", "release_note"])
        _record(shutdown, "shutdown.released", actor=actor, at=at)
    return shutdown


@violations_recorded
def shutdown_break_glass(*, actor: Actor, at: datetime, shutdown_id: UUID, note: str = "") -> Shutdown:
    """One owner's word that a shutdown ends although nobody is left who could release it. The second owner's, of
    another group and within a day, releases it."""
    with transaction.atomic():
        shutdown = tenant_get(Shutdown, shutdown_id, lock=True)
        reference, groups = actor_reference(actor), _owner_groups(actor, shutdown)
        _break_glass_check(shutdown, actor=actor, groups=groups)
        earlier = shutdown.broken.filter(at__gt=at - BREAK_GLASS_LASTS).exclude(person_ref=reference)
        # Two owners of one group share one interest; two groups do not.
        second = next((one for one in earlier if len({*one.groups, *groups}) > 1), None)
        word = BreakGlass(
            shutdown=shutdown,
            person_ref=reference,
            groups=groups,
            note=note_create(organization_id=shutdown.organization_id, text=note),
            at=at,
        )
        word.save()
        said = {"groups": groups, "first": str(second.id) if second else None}
        if second is None:
            _record(shutdown, "shutdown.break_glass_asked", actor=actor, at=at, said=said)
            return shutdown
        shutdown.release()
        shutdown.released_by_ref, shutdown.released_at, shutdown.release_note = reference, at, word.note
        shutdown.save(update_fields=["state", "released_by_ref", "released_at", "release_note"])
        _record(shutdown, "shutdown.break_glass_released", actor=actor, at=at, said=said)
    return shutdown


def _owner_groups(actor: Actor, shutdown: Shutdown) -> list[str]:
    if actor.kind is not ActorKind.PERSON or actor.id is None:
        return []
    with every_tenant():  # a global shutdown has no organization: the owners of any may end it
        return owner_groups_of(user_id=actor.id, organization_id=shutdown.organization_id)


def _break_glass_check(shutdown: Shutdown, *, actor: Actor, groups: list[str]) -> None:
    if not groups:
        raise ScopeMissing("Only an owner of a readiness area can break the glass.")
    second_person_require(
        actor=actor,
        kind=WorkKind.SHUTDOWN,
        subject_id=shutdown.id,
        started_ref=shutdown.engaged_by_ref,
        organization_id=shutdown.organization_id,
    )
    if shutdown.drill or _is_denial(shutdown):
        raise WrongState("Break-glass is not for a drill, nor for a record that differs from what was sealed.")
    if shutdown.state != ShutdownState.ENGAGED:
        raise WrongState("This shutdown is released already.")
    others = others_may(
        organization_id=shutdown.organization_id,
        permission=OPERATE,
        commitment=shutdown.engaged_by_ref,
        people=authors_of(kind=WorkKind.SHUTDOWN, subject_id=shutdown.id),
    )
    if others:
        raise GlassUnbroken(organization_id=shutdown.organization_id, subject_type="shutdown", subject_id=shutdown.id)


def _is_denial(shutdown: Shutdown) -> bool:
    """Engaged by the program because of the record: it ends by confirming a loss, or when two people accept faults."""
    if shutdown.reason_code == RECORD_DIFFERS:
        return bool(shutdown.target == RECORD_DIFFERS and shutdown.engaged_by_kind == SYSTEM.kind.value)
    return bool(shutdown.target == LEDGER_INCONSISTENT and shutdown.scope == ShutdownScope.GLOBAL)


def shutdown_rehearse(
    *, actor: Actor, scope: ShutdownScope, organization_id: UUID | None, target: str = "", installation: bool = False
) -> dict[str, Any]:
    """What a shutdown would stop. Checks the same as engaging it, and writes nothing."""
    organization_id, target = _resolve(actor, scope, organization_id, target, installation=installation)
    return shutdown_preview(scope=scope, organization_id=organization_id, target=target)


def _resolve(
    actor: Actor, scope: ShutdownScope, organization_id: UUID | None, target: str, *, installation: bool
) -> tuple[UUID | None, str]:
    """The organization and target to store, after checking that the actor may stop them: global and regional scopes
    need an administrator of the installation, the others a right in their organization."""
    if scope in INSTALLATION_WIDE:
        if not installation:
            raise InvalidInput(errors=[FieldError("/scope", "global and region need an installation administrator")])
        if scope is ShutdownScope.REGION and target not in load_profiles().codes:
            raise InvalidInput(errors=[FieldError("/target", "is not a known region")])
        return None, target if scope is ShutdownScope.REGION else ""
    if organization_id is None or not (installation or actor.may_act_in(organization_id)):
        raise NotFound
    if scope is ShutdownScope.ORGANIZATION:
        return organization_id, str(organization_id)
    if scope is ShutdownScope.CONNECTOR and target not in set(AdapterName):
        raise InvalidInput(errors=[FieldError("/target", "one of: " + ", ".join(AdapterName))])
    if scope is ShutdownScope.CONTRACT and not _has_contract(organization_id, target):
        raise InvalidInput(
            errors=[FieldError("/target", "is not a contract of this organization (slug or slug/version)")]
        )
    return organization_id, target


def _has_contract(organization_id: UUID, target: str) -> bool:
    """Whether the target covers a contract of this organization."""
    # With the rule that enforcement uses: a target that is accepted here but covers nothing would be a shutdown that
    # stops nothing, and nobody would notice.
    organization = Organization.objects.filter(id=organization_id).first()
    covered = contracts_covered(scope=ShutdownScope.CONTRACT, target=target)
    return organization is not None and organization.contracts.filter(covered).exists()


def _record(
    shutdown: Shutdown, action: str, *, actor: Actor, at: datetime, said: Mapping[str, Any] | None = None
) -> None:
    note = shutdown.release_note or shutdown.note
    ledger_append(
        action=action,
        organization_id=shutdown.organization_id,
        subject_type="shutdown",
        subject_id=shutdown.id,
        actor=actor,
        at=at,
        payload={
            "scope": shutdown.scope,
            "target": shutdown.target,
            "drill": shutdown.drill,
            "contracts": shutdown.preview.get("contracts", 0),
            "note_sha256": note.sha256 if note else None,
            **(said or {}),
        },
        reason_code=shutdown.reason_code,
    )
