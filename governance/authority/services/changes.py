"""Authority changes: one person proposes, a second one confirms or declines. While an organization is being founded,
its founder acts alone, and every such act is marked."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from governance.authority.errors import FreshSignInNeeded
from governance.authority.hooks import Applied, act_for, kinds_registered
from governance.authority.models import AuthorityChange
from governance.authority.rules import ACTS, LIFETIME, is_fresh
from governance.authority.selectors import authority_due, authority_get, entitled, refusal_for
from governance.authority.states import AuthorityState
from governance.boundary.services import note_create
from governance.enforcement.sql import send_lock_exclude
from governance.ledger.rules.entry import canonical_sha256
from governance.ledger.services import ledger_append, person_commitment
from governance.people.selectors.people import author_of, person_stays
from governance.people.services.founding import founding_settle
from governance.tenancy.models import Organization
from governance.tenancy.selectors import tenant_get
from governance.violations.errors import SecondPersonNeeded
from governance.violations.services import violations_recorded
from reasoncodes.base.actors import CLOCK, Actor, ActorKind
from reasoncodes.base.errors import FieldError, InvalidInput, NotFound, Refused, ScopeMissing, WrongState
from reasoncodes.base.tenancy import tenant_scope


@dataclass(frozen=True, slots=True)
class Outcome:
    """`applied` is None while the change waits for a second person. `once` is shown now and never again."""

    change: AuthorityChange
    applied: Applied | None = None
    once: str = ""


@violations_recorded
def authority_act(
    *,
    actor: Actor,
    at: datetime,
    organization: Organization,
    kind: str,
    subject: str = "",
    details: Mapping[str, Any] | None = None,
    note: str = "",
) -> Outcome:
    """What every entry point calls for an act that widens authority. Proposes it; a founder's act comes into force at
    once."""
    person_id = _proposer(actor, organization, kind)
    act = act_for(kind)
    with tenant_scope([organization.id]), transaction.atomic():
        _exclude_sending(kind)
        founding = founding_settle(organization=organization, at=at)
        prepared = act.prepare(actor=actor, at=at, organization=organization, subject=subject, details=details or {})
        stored = note_create(organization_id=organization.id, text=note)
        change = AuthorityChange(
            organization=organization,
            kind=kind,
            subject=prepared.subject,
            details=prepared.details,
            before=prepared.before,
            after=prepared.after,
            loosens=prepared.loosens,
            founding=founding,
            proposed_by_id=person_id,
            proposed_through_id=actor.id if actor.kind is ActorKind.SERVICE else None,
            note=stored,
            proposed_at=at,
            expires_at=at + LIFETIME,
        )
        change.save(force_insert=True)
        if not founding:
            _record(change, "authority.proposed", actor=actor, at=at)
            return Outcome(change, once=prepared.once)
        # Nobody could confirm: the organization has one such person. The mark stays on the row and in the ledger.
        applied = act.apply(actor=actor, at=at, change=change)
        _end(change, "put_in_force", by=None, at=at, result=applied.result)
        _record(change, "authority.founding", actor=actor, at=at)
        return Outcome(change, applied, once=prepared.once or applied.once)


def _proposer(actor: Actor, organization: Organization, kind: str) -> UUID:
    """The person who proposes. A service proposes for the person who is responsible for it."""
    if kind not in kinds_registered() or kind not in ACTS:
        raise InvalidInput(errors=[FieldError("/kind", "one of: " + ", ".join(sorted(kinds_registered())))])
    if not actor.may_act_in(organization.id):
        raise NotFound
    with tenant_scope([organization.id]):
        person_id = author_of(actor=actor)
    if person_id is None:
        raise Refused("This service account has no responsible person, so it cannot propose anything.")
    if not entitled(user_id=person_id, organization=organization, rule=ACTS[kind]):
        if ACTS[kind].installation and not organization.home:
            raise Refused("Only the organization that runs the installation can change this.")
        raise ScopeMissing("You, or the person responsible for this service, cannot do this here.")
    return person_id


def _exclude_sending(kind: str) -> None:
    """Takes the send lock if the act needs it: before any row lock, as everywhere. The act takes it again."""
    if getattr(act_for(kind), "excludes_sending", False):
        send_lock_exclude()


@violations_recorded
def authority_confirm(*, actor: Actor, at: datetime, change_id: UUID, authenticated_at: datetime | None) -> Outcome:
    """Puts a proposal in force, in one transaction with the act itself. `authenticated_at`: when the person last proved
    who they are."""
    if actor.kind is not ActorKind.PERSON or actor.id is None:
        raise Refused("Only a person can confirm a change of authority.")
    _lapse_if_due(actor, change_id, at)
    with transaction.atomic():
        _exclude_sending(authority_get(change_id=change_id).kind)
        change = _lock_waiting(actor, change_id)
        # Locked before they are judged: `person_deactivate` waits, so that nobody confirms after their access ended.
        for user_id in sorted({actor.id, change.proposed_by_id}):
            person_stays(user_id=user_id)
        with tenant_scope([change.organization_id]):
            why = refusal_for(change=change, user_id=actor.id)
            if why:
                raise SecondPersonNeeded(
                    why, subject_type="authority_change", subject_id=change.id, organization_id=change.organization_id
                )
            if not is_fresh(authenticated_at, at=at):
                raise FreshSignInNeeded
            change.decided_by_id = actor.id  # an act that shows a link records to whom
            applied = act_for(change.kind).apply(actor=_as_proposer(change), at=at, change=change)
        _end(change, "put_in_force", by=actor.id, at=at, result=applied.result)
        _record(change, "authority.confirmed", actor=actor, at=at)
    return Outcome(change, applied, once=applied.once)


def authority_decline(*, actor: Actor, at: datetime, change_id: UUID) -> AuthorityChange:
    """By anybody who has the right to the act. It takes nothing away that was in force, so one person is enough."""
    if actor.kind is not ActorKind.PERSON or actor.id is None:
        raise Refused("Only a person can decline a change of authority.")
    _lapse_if_due(actor, change_id, at)
    with transaction.atomic():
        change = _lock_waiting(actor, change_id)
        if change.proposed_by_id == actor.id:
            raise WrongState("You proposed this. Withdraw it instead.")
        _end(change, "decline", by=actor.id, at=at)
        _record(change, "authority.declined", actor=actor, at=at)
    return change


def authority_withdraw(*, actor: Actor, at: datetime, change_id: UUID) -> AuthorityChange:
    """By the person who proposed it, also through the service they are responsible for."""
    _lapse_if_due(actor, change_id, at)
    with transaction.atomic():
        change = _lock_waiting(actor, change_id)
        person_id = author_of(actor=actor)
        if person_id is None or change.proposed_by_id != person_id:
            raise Refused("Only the person who proposed this can withdraw it. You can decline it.")
        _end(change, "withdraw", by=person_id, at=at)
        _record(change, "authority.withdrawn", actor=actor, at=at)
    return change


def authority_lapse_due(*, at: datetime, limit: int = 200) -> int:
    """Ends proposals that nobody confirmed in time. Their end is the deadline, not the moment of the check."""
    return sum(_lapse(change_id, at) for change_id in authority_due(at=at, limit=limit))


def _lapse_if_due(actor: Actor, change_id: UUID, at: datetime) -> None:
    """In a transaction of its own: the refusal that follows must not undo it."""
    change = tenant_get(AuthorityChange, change_id)
    if actor.may_act_in(change.organization_id) and change.expires_at <= at:
        _lapse(change_id, at)


def _lapse(change_id: UUID, at: datetime) -> bool:
    with transaction.atomic():
        # Locked, then looked at again: somebody may have confirmed it a moment ago, and two checks may run at once.
        change = AuthorityChange.objects.select_for_update(no_key=True, of=("self",)).get(id=change_id)
        if change.state != AuthorityState.PROPOSED or change.expires_at > at:
            return False
        _end(change, "lapse", by=None, at=change.expires_at)
        _record(change, "authority.lapsed", actor=CLOCK, at=change.expires_at)
        return True


def _lock_waiting(actor: Actor, change_id: UUID) -> AuthorityChange:
    # Of two people who decide at once, the second one waits here and finds the end of it.
    change = tenant_get(AuthorityChange, change_id, lock=True)
    if not actor.may_act_in(change.organization_id):
        raise NotFound
    if change.state != AuthorityState.PROPOSED:
        raise WrongState(f"This proposal is {change.state.replace('_', ' ')} already.")
    return change


def _as_proposer(change: AuthorityChange) -> Actor:
    where = frozenset({change.organization_id})
    if change.proposed_through_id:
        return Actor(ActorKind.SERVICE, change.proposed_through_id, where)
    return Actor(ActorKind.PERSON, change.proposed_by_id, where)


def _end(
    change: AuthorityChange, move: str, *, by: UUID | None, at: datetime, result: dict[str, Any] | None = None
) -> None:
    getattr(change, move)()
    change.decided_by_id, change.decided_at, change.result = by, at, result or {}
    change.save(update_fields=["state", "decided_by", "decided_at", "result"])


def _record(change: AuthorityChange, action: str, *, actor: Actor, at: datetime) -> None:
    """The details may name people, so that only their hash enters the ledger."""
    ledger_append(
        action=action,
        organization_id=change.organization_id,
        subject_type="authority_change",
        subject_id=change.id,
        actor=actor,
        at=at,
        payload={
            "kind": change.kind,
            "details_sha256": canonical_sha256({"subject": change.subject, "details": change.details}),
            "proposed_by": person_commitment(user_id=change.proposed_by_id),
            "founding": change.founding,
            "loosens": change.loosens,
            "result": change.result,
        },
    )
