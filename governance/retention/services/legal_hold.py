"""Legal holds: placed with a reason, released by a second person with a reason. They take precedence over purge and
deletion. Also the commitments by which legal holds, exports and deletions name a context reference."""

from datetime import datetime
from hashlib import sha256
from secrets import token_bytes
from uuid import UUID

from django.db import connection, transaction
from django_fsm import TransitionNotAllowed

from governance.authorship.services import authorship_add, second_person_require
from governance.authorship.states import WorkKind
from governance.boundary.models import Note
from governance.boundary.services import note_create, reference_check
from governance.contracts.models import Contract
from governance.ledger.services import actor_reference, ledger_append, person_commitment
from governance.people.models import User
from governance.people.rules.roles import OWNER_OF_HOLDS
from governance.people.selectors.people import commitment_has_role
from governance.retention.hooks import subject_kind
from governance.retention.models import ContextReference, LegalHold
from governance.retention.selectors.retention import terms_for
from governance.retention.states import HoldScope, HoldState
from governance.tenancy.selectors import tenant_get
from governance.violations.errors import SecondPersonNeeded
from governance.violations.services import violations_recorded
from reasoncodes.base.actors import Actor
from reasoncodes.base.errors import FieldError, InvalidInput, NotFound, WrongState
from reasoncodes.codes import Scope
from reasoncodes.selectors import reason_code_require


def context_commitment(*, organization_id: UUID, reference: str, pointer: str) -> str:
    """SHA-256 over a salt, the organization and the reference. The salt is in the reference's `ContextReference`, which
    is made on first use."""
    reference_check(reference=reference, pointer=pointer)
    salt = token_bytes(32)
    commitment = sha256(salt + str(organization_id).encode() + reference.encode()).hexdigest()
    # Two first uses at once: the unique constraint lets one row in, and both get its commitment.
    row, _ = ContextReference.objects.get_or_create(
        organization_id=organization_id, reference=reference, defaults={"salt": salt, "commitment": commitment}
    )
    return row.commitment


def hold_lock(*, organization_id: UUID, shared: bool = False) -> None:
    """The lock between legal holds (exclusive) and erasures (shared) of an organization, until the transaction ends."""
    # Without it, an erasure that found no legal hold could commit a moment after one was placed. A trigger takes it
    # again when a legal hold is inserted, for code that does not come this way.
    function = "pg_advisory_xact_lock_shared" if shared else "pg_advisory_xact_lock"
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {function}(holdpoint_hold_lock(%s))", [organization_id])


def context_reference_destroy(*, organization_id: UUID, commitment: str) -> None:
    """Destroy the link between a commitment and its reference, unless a legal hold needs it."""
    # A legal hold that was placed after the erasure keeps the link: without it, the hold would not cover later records
    # about the same reference. The lock before the look: a hold that is being placed is waited for.
    hold_lock(organization_id=organization_id, shared=True)
    if not LegalHold.objects.filter(
        organization_id=organization_id, scope=HoldScope.CONTEXT, target=commitment, state=HoldState.ACTIVE
    ).exists():
        ContextReference.objects.filter(organization_id=organization_id, commitment=commitment).delete()


@violations_recorded
def legal_hold_place(
    *,
    actor: Actor,
    at: datetime,
    organization_id: UUID,
    scope: HoldScope,
    target: str = "",
    reason_code: str,
    authority_ref: str = "",
    note: str = "",
) -> LegalHold:
    if not actor.may_act_in(organization_id):
        raise NotFound
    with transaction.atomic():
        # Before `_target` looks the reference up: otherwise a deletion could destroy it in between.
        hold_lock(organization_id=organization_id)
        reason_code_require(organization_id=organization_id, scope=Scope.INTERVENTION, code=reason_code, note=note)
        reference_check(reference=authority_ref, pointer="/authority_ref")
        hold = LegalHold(
            organization_id=organization_id,
            scope=scope,
            target=_target(organization_id, scope, target),
            reason_code=reason_code,
            authority_ref=authority_ref,
            note=note_create(organization_id=organization_id, text=note),
            placed_by_kind=actor.kind.value,
            placed_by_ref=actor_reference(actor),
            placed_at=at,
        )
        hold.save(force_insert=True)
        authorship_add(
            actor=actor, at=at, organization_id=organization_id, kind=WorkKind.LEGAL_HOLD, subject_ids=[hold.id]
        )
        _record(hold, "legal_hold.placed", reason_code, hold.note, actor=actor, at=at)
    return hold


@violations_recorded
def legal_hold_release(*, actor: Actor, at: datetime, hold_id: UUID, reason_code: str, note: str = "") -> LegalHold:
    """Release by another person than the one who placed it. If a contract demands it, one of the two must be from
    compliance."""
    with transaction.atomic():
        # Locked: of two releases at once the second one sees that it is too late.
        hold = tenant_get(LegalHold, hold_id, lock=True)
        if not actor.may_act_in(hold.organization_id):
            raise NotFound
        reason_code_require(organization_id=hold.organization_id, scope=Scope.INTERVENTION, code=reason_code, note=note)
        _second_person(hold, actor)
        try:
            hold.release()
        except TransitionNotAllowed as error:
            raise WrongState("This legal hold is already released.") from error
        hold.release_reason_code, hold.released_by_ref, hold.released_at = reason_code, actor_reference(actor), at
        hold.release_note = note_create(organization_id=hold.organization_id, text=note)
        hold.save(
            update_fields=["state", "release_reason_code", "released_by_ref", "released_at", "release_note"],
        )
        _record(hold, "legal_hold.released", reason_code, hold.release_note, actor=actor, at=at)
    return hold


def _second_person(hold: LegalHold, actor: Actor) -> None:
    facts = {"subject_type": "legal_hold", "subject_id": hold.id, "organization_id": hold.organization_id}
    second_person_require(
        actor=actor,
        kind=WorkKind.LEGAL_HOLD,
        subject_id=hold.id,
        started_ref=hold.placed_by_ref,
        organization_id=hold.organization_id,
        words="The person who placed a legal hold cannot release it. Another person has to.",
    )
    if terms_for(organization=hold.organization).hold_release_needs_compliance:
        people = {hold.placed_by_ref, actor_reference(actor)}
        if not commitment_has_role(commitments=people, organization_id=hold.organization_id, role=OWNER_OF_HOLDS):
            raise SecondPersonNeeded(
                "A contract of this organization requires that one of the two people is from global-compliance.",
                **facts,  # type: ignore[arg-type]
            )


def _target(organization_id: UUID, scope: HoldScope, target: str) -> str:
    """The target as the row stores it: a slug, an id, or a commitment. References and people are not stored in clear,
    because the row stays after their erasure."""
    if scope is HoldScope.ORGANIZATION:
        if target:
            raise InvalidInput(errors=[FieldError("/target", "must be empty for a whole organization")])
        return ""
    if not target.strip():
        raise InvalidInput(errors=[FieldError("/target", "is required for this scope")])
    if scope is HoldScope.CONTEXT:
        return context_commitment(organization_id=organization_id, reference=target, pointer="/target")
    if scope is HoldScope.CONTRACT:
        if not Contract.objects.filter(organization_id=organization_id, slug=target).exists():
            raise InvalidInput(errors=[FieldError("/target", "is not the slug of a contract of this organization")])
        return target
    return _by_id(organization_id, scope, target)


def _by_id(organization_id: UUID, scope: HoldScope, target: str) -> str:
    try:
        row_id = UUID(target)
    except ValueError:
        raise InvalidInput(errors=[FieldError("/target", "is not an id")]) from None
    if scope is not HoldScope.PERSON:
        if subject_kind(scope.value).get(organization_id, row_id) is None:
            raise InvalidInput(errors=[FieldError("/target", f"is not the id of this organization's {scope.value}")])
        return str(row_id)
    members = User.objects.filter(id=row_id, groups__role_group__organization_id=organization_id)
    if not members.exists():
        raise InvalidInput(errors=[FieldError("/target", "is not a person of this organization")])
    return person_commitment(user_id=row_id)


def _record(hold: LegalHold, action: str, reason_code: str, note: Note | None, *, actor: Actor, at: datetime) -> None:
    ledger_append(
        action=action,
        organization_id=hold.organization_id,
        subject_type="legal_hold",
        subject_id=hold.id,
        actor=actor,
        at=at,
        payload={
            "scope": hold.scope,
            "target": hold.target,
            "authority_ref": hold.authority_ref,
            "note_sha256": note.sha256 if note else None,
        },
        reason_code=reason_code,
    )
