"""Deletion requests: one person or service asks, another person decides, and an erasure order does it."""

from datetime import datetime, timedelta
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import Q

from governance.authorship.services import authorship_add, second_person_require
from governance.authorship.states import WorkKind
from governance.boundary.services import note_create
from governance.ledger.services import actor_reference, ledger_append, person_commitment
from governance.people.models import User
from governance.retention.errors import ErasureBlocked
from governance.retention.hooks import subject_kinds
from governance.retention.models import ContextReference, DeletionRequest, ErasureItem, ErasureOrder, ExportRequest
from governance.retention.rules import BLOCKERS, LAWFUL_REFUSALS, NOTHING_TO_ERASE, RetentionSubject, blockers_counted
from governance.retention.selectors.retention import holds_active, terms_for
from governance.retention.selectors.subjects import person_organizations, person_subject
from governance.retention.services.erasure import erasure_order, orderer
from governance.retention.services.legal_hold import context_commitment, context_reference_destroy
from governance.retention.states import DeletionState, ErasureKind, ExportState
from governance.tenancy.models import Organization
from governance.tenancy.selectors import tenant_get
from governance.violations.services import violations_recorded
from reasoncodes.base.actors import Actor, ActorKind
from reasoncodes.base.errors import AlreadyExists, FieldError, InvalidInput, NotFound, WrongState
from reasoncodes.base.tenancy import every_tenant
from reasoncodes.codes import Scope
from reasoncodes.selectors import reason_code_require


@violations_recorded
def deletion_request(
    *, actor: Actor, at: datetime, organization: Organization, context_ref: str = "", person_id: UUID | None = None
) -> DeletionRequest:
    """Request the deletion of a context reference or a person. The due date comes from the regional profile."""
    if not actor.may_act_in(organization.id):
        raise NotFound
    if bool(context_ref) == (person_id is not None):
        raise InvalidInput(errors=[FieldError("/context_ref", "give either this or person_id")])
    try:
        with transaction.atomic():
            row = DeletionRequest(
                organization=organization,
                about="context" if context_ref else "person",
                commitment=_commitment(actor, organization, context_ref, person_id),
                requested_by_kind=actor.kind.value,
                requested_by_ref=actor_reference(actor),
                requested_at=at,
                due_at=at + timedelta(days=terms_for(organization=organization).terms.deletion_days),
            )
            row.save(force_insert=True)
            authorship_add(
                actor=actor, at=at, organization_id=organization.id, kind=WorkKind.DELETION, subject_ids=[row.id]
            )
            _record(row, "deletion.requested", actor=actor, at=at, due_at=row.due_at.isoformat())
    # The unique constraint `deletion_one_open`: a look before the insert would miss a request made at the same time.
    except IntegrityError as error:
        raise AlreadyExists("There is already an open request about this.") from error
    return row


def _commitment(actor: Actor, organization: Organization, context_ref: str, person_id: UUID | None) -> str:
    if context_ref:
        return context_commitment(organization_id=organization.id, reference=context_ref, pointer="/context_ref")
    user = User.objects.filter(id=person_id).first() if person_id else None
    places = person_organizations(user=user) if user else set()
    # A person has one reference for all organizations. The actor must therefore be allowed to act in every organization
    # where the person acted: otherwise one organization could erase a person from another one's record.
    if user is None or organization.id not in places or not all(actor.may_act_in(place) for place in places):
        raise NotFound
    return person_commitment(user_id=user.id)


def _deletion_subjects(*, request: DeletionRequest) -> list[RetentionSubject]:
    """The subjects that would be erased."""
    if request.about == "person":
        user = User.objects.filter(reference__commitment=request.commitment).first()
        found = person_subject(user=user) if user else None
        return [found] if found else []
    known = ContextReference.objects.filter(commitment=request.commitment, organization_id=request.organization_id)
    reference = known.values_list("reference", flat=True).first()
    if reference is None:
        return []
    return [one for kind in subject_kinds() for one in kind.about(request.organization_id, reference)]


def deletion_blockers(*, request: DeletionRequest, at: datetime) -> tuple[list[RetentionSubject], dict[str, int]]:
    """The subjects that may be erased, and how many may not, by reason."""
    places = {request.organization_id}
    if request.about == "person" and (user := User.objects.filter(reference__commitment=request.commitment).first()):
        places |= person_organizations(user=user)
    # Legal holds on a person count in every organization where they acted, also outside the actor's scope.
    with every_tenant():
        holds = [hold for place in sorted(places) for hold in holds_active(organization_id=place)]
    return blockers_counted(_deletion_subjects(request=request), holds=holds, at=at)


@violations_recorded
def deletion_accept(
    *, actor: Actor, at: datetime, deletion_id: UUID, reason_code: str, note: str = ""
) -> DeletionRequest:
    """Accept the request and order the erasure. Nothing may block it now; the database checks each item again at its
    turn."""
    with transaction.atomic():
        row = _open(actor, deletion_id)
        reason_code_require(organization_id=row.organization_id, scope=Scope.INTERVENTION, code=reason_code, note=note)
        free, blocked = deletion_blockers(request=row, at=at)
        if blocked:
            raise ErasureBlocked(
                errors=[FieldError("", f"{count} of {count + len(free)}", rule=code) for code, count in blocked.items()]
            )
        stored = note_create(organization_id=row.organization_id, text=note)
        row.order = erasure_order(
            actor=actor,
            at=at,
            organization_id=row.organization_id,
            kind=ErasureKind.DELETION,
            subjects=free,
            reason_code=reason_code,
            note=stored,
        )
        row.accept()
        row.note = stored
        _decided(row, reason_code, actor=actor, at=at)
        _record(row, "deletion.accepted", actor=actor, at=at, order=str(row.order.id), count=len(free))
    return row


@violations_recorded
def deletion_refuse(
    *, actor: Actor, at: datetime, deletion_id: UUID, reason_code: str, note: str = ""
) -> DeletionRequest:
    """Refuse the request with a lawful reason. Reasons that the program can check must apply; the others need a
    note."""
    with transaction.atomic():
        row = _open(actor, deletion_id)
        if reason_code not in LAWFUL_REFUSALS:
            raise InvalidInput(
                errors=[FieldError("/reason_code", "one of: " + ", ".join(sorted(LAWFUL_REFUSALS)))],
            )
        reason_code_require(organization_id=row.organization_id, scope=Scope.DENIAL, code=reason_code, note=note)
        _is_so(row, reason_code, at)
        row.refuse()
        row.note = note_create(organization_id=row.organization_id, text=note)
        _decided(row, reason_code, actor=actor, at=at)
        _record(row, "deletion.refused", actor=actor, at=at)
    return row


def _is_so(row: DeletionRequest, reason_code: str, at: datetime) -> None:
    """Raise if the program can see that the reason does not apply."""
    free, blocked = deletion_blockers(request=row, at=at)
    false = reason_code in BLOCKERS and reason_code not in blocked
    if false or (reason_code == NOTHING_TO_ERASE and (free or blocked)):
        said = ", ".join(blocked) or "nothing"
        raise InvalidInput(errors=[FieldError("/reason_code", f"does not apply; blocked by: {said}")])


def _open(actor: Actor, deletion_id: UUID) -> DeletionRequest:
    """The open request, locked, if this actor may decide on it."""
    # Locked before its state is read: two people who decide at once would otherwise both find it open.
    row = tenant_get(DeletionRequest, deletion_id, lock=True)
    if not actor.may_act_in(row.organization_id) or actor.kind is not ActorKind.PERSON:
        raise NotFound
    second_person_require(
        actor=actor,
        kind=WorkKind.DELETION,
        subject_id=row.id,
        started_ref=row.requested_by_ref,
        organization_id=row.organization_id,
        words="The person who asked for a deletion cannot decide on it. Another person has to.",
    )
    if row.state != DeletionState.REQUESTED:
        raise WrongState(f"This request is {row.state}.")
    return row


def _decided(row: DeletionRequest, reason_code: str, *, actor: Actor, at: datetime) -> None:
    row.reason_code, row.decided_by_ref, row.decided_at = reason_code, actor_reference(actor), at
    row.finished_at = at if row.state == DeletionState.REFUSED else None
    row.save(
        update_fields=["state", "reason_code", "decided_by_ref", "decided_at", "finished_at", "note", "order"],
    )


def deletion_finish(order: ErasureOrder, at: datetime) -> None:
    """End the request together with its order: done, with reference and salt destroyed; or refused, if an item was."""
    row = DeletionRequest.objects.select_for_update(no_key=True, of=("self",)).filter(order=order).first()
    if row is None or row.state != DeletionState.ACCEPTED:
        return
    # An item with nothing left to erase does not count: what was asked for is so.
    refused = ErasureItem.objects.filter(~Q(problem=NOTHING_TO_ERASE), order=order, state="refused")
    problem = refused.order_by("id").values_list("problem", flat=True).first()
    if problem:
        row.refuse()
        row.reason_code = problem
    else:
        row.finish()
        # Archives about the reference expire now; the next scheduled task removes their files.
        ExportRequest.objects.filter(organization_id=row.organization_id, commitment=row.commitment).filter(
            state=ExportState.READY
        ).update(expires_at=at)
        context_reference_destroy(organization_id=row.organization_id, commitment=row.commitment)
    row.finished_at = at
    row.save(update_fields=["state", "reason_code", "finished_at"])
    _record(row, "deletion.refused" if problem else "deletion.done", actor=orderer(order), at=at)


def _record(row: DeletionRequest, action: str, *, actor: Actor, at: datetime, **more: object) -> None:
    ledger_append(
        action=action,
        organization_id=row.organization_id,
        subject_type="deletion_request",
        subject_id=row.id,
        actor=actor,
        at=at,
        payload={
            "about": row.about,
            "commitment": row.commitment,
            "note_sha256": row.note.sha256 if row.note else None,
            **more,
        },
        reason_code=row.reason_code,
    )
