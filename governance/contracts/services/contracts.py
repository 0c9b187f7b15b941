"""What people do with a contract: draft, change, open, suspend, retire, discard, make a new version. A contract that
has left its draft does not change. The owners' approvals are in `readiness.py`."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import Max
from django_fsm import TransitionNotAllowed

from governance.authorship.services import author_require, authorship_add, authorship_copy
from governance.authorship.states import WorkKind
from governance.boundary.services import content_check, note_create, reference_check, text_check
from governance.contracts.configured import signature_default
from governance.contracts.errors import DocumentInvalid, ReadinessIncomplete
from governance.contracts.models import Contract, ContractDocument, ReadinessDecision
from governance.contracts.rules.documents import (
    default_documents,
    document_sha256,
    validate_documents,
    without_retired,
)
from governance.contracts.rules.readiness import APPROVED, CORE_FIELDS
from governance.contracts.selectors import contract_lock, readiness_board
from governance.contracts.services.approvers import approvers_require
from governance.contracts.states import ADAPTER_EFFECT, STRICTNESS, ContractState, Effect, ReadinessVerdict
from governance.enforcement.services import contract_snapshot, snapshot_store
from governance.enforcement.sql import send_lock_exclude
from governance.ledger.services import ledger_append
from governance.tenancy.models import Organization
from governance.violations.errors import RecordImmutable
from governance.violations.services import violations_recorded
from reasoncodes.base.actors import Actor
from reasoncodes.base.errors import AlreadyExists, FieldError, NotFound, WrongState
from reasoncodes.codes import Scope
from reasoncodes.selectors import reason_code_require


def contract_create(
    *,
    actor: Actor,
    at: datetime,
    organization: Organization,
    slug: str,
    title: str,
    review_owner: str,
    policy_slug: str,
    documents: Mapping[str, Any] | None = None,
    **core: Any,
) -> Contract:
    """Creates a draft. Documents that are not given are the safe defaults."""
    if not actor.may_act_in(organization.id):
        raise NotFound
    contract = Contract(
        organization=organization, slug=slug, title=title, review_owner=review_owner, policy_slug=policy_slug, **core
    )
    words = {"slug": slug, "title": title, "review_owner": review_owner, "policy_slug": policy_slug}
    _check_words(words, documents or {})
    chosen = default_documents() | dict(documents or {})
    _validate(chosen, contract)
    author = author_require(actor=actor)
    try:
        with transaction.atomic():
            contract.save(force_insert=True)
            made = ContractDocument.objects.bulk_create(
                _document(contract, area, document, author) for area, document in chosen.items()
            )
            _add_author(contract, made, actor=actor, at=at)
            record_contract(contract, "contract.created", actor=actor, at=at)
    except IntegrityError as error:
        # The unique constraint decides: a check before the insert would let two requests pass it together.
        raise AlreadyExists("This organization has a contract with this slug; make a new version of it.") from error
    return contract


@violations_recorded
def contract_change(
    *,
    actor: Actor,
    at: datetime,
    contract_id: UUID,
    core: Mapping[str, Any] | None = None,
    documents: Mapping[str, Any] | None = None,
) -> Contract:
    """Changes a draft. A person who changes a document becomes one of its authors and cannot approve it. Effect, risk
    tier, adapter, review owner and policy are part of what all ten areas approve."""
    with transaction.atomic():
        # Locked, so that the contract is not opened or approved while it changes.
        contract = contract_lock(actor=actor, contract_id=contract_id)
        if contract.state != ContractState.DRAFT:
            raise RecordImmutable(
                "The contract has left its draft. Make a new version of it.",
                subject_type="contract",
                subject_id=contract.id,
                organization_id=contract.organization_id,
            )
        changes = dict(core or {})
        author = author_require(actor=actor)
        _check_words(changes, documents or {})
        _approved_as_it_is(contract, changes)
        terms_differ = any(name in CORE_FIELDS and getattr(contract, name) != value for name, value in changes.items())
        # Read before anything changes: the first change of an approved document begins a new set of authors.
        approved = {row.area for row in readiness_board(contract=contract) if row.status == APPROVED}
        for name, value in changes.items():
            setattr(contract, name, value)
        stored = {row.area: row for row in ContractDocument.objects.filter(contract=contract)}
        kept = {area: without_retired(area, row.document) for area, row in stored.items()}
        _validate(kept | dict(documents or {}), contract)
        if changes:
            contract.save(update_fields=list(changes))
        changed = _save_documents(stored, documents or {}, author)
        _add_author(contract, [stored[area] for area in changed], actor=actor, at=at, approved=approved)
        if terms_differ:
            _add_author(contract, list(stored.values()), actor=actor, at=at)
        record_contract(contract, "contract.changed", actor=actor, at=at, fields=sorted(changes), areas=changed)
    return contract


def _approved_as_it_is(contract: Contract, changes: Mapping[str, Any]) -> None:
    """Refuses to change effect, risk tier, adapter, review owner or policy after an owner has approved: they approved
    the document for these values."""
    if not any(name in CORE_FIELDS and getattr(contract, name) != value for name, value in changes.items()):
        return
    rows = readiness_board(contract=contract)
    # Carried-over approvals do not block the change: the board makes them stale when these fields differ.
    approved = [row.area for row in rows if row.status == APPROVED and row.decision.carried_from_id is None]
    if approved:
        raise WrongState(
            "Owners have approved the contract as it is. Ask them to revoke first, then change it.",
            errors=[FieldError(f"/{area}", "is approved") for area in approved],
        )


def contract_open(*, actor: Actor, at: datetime, contract_id: UUID) -> Contract:
    """Opens a contract for attempts. The owners of all ten areas must have approved exactly these documents, and at
    least two of them must be different people."""
    with transaction.atomic():
        # Locked before the board is read: a revocation waits, and then finds an open contract that it suspends.
        contract = contract_lock(actor=actor, contract_id=contract_id)
        rows = readiness_board(contract=contract)
        missing = [row for row in rows if row.status != APPROVED]
        if missing:
            raise ReadinessIncomplete(
                errors=[
                    FieldError(f"/{row.area}", f"{row.status}; owned by {row.owner_group}", rule=row.status)
                    for row in missing
                ]
            )
        founding = approvers_require(contract=contract, rows=rows, at=at)
        # Only the first opening takes the snapshot: after it the documents cannot change, and attempts that already
        # ran name this one.
        if contract.state == ContractState.DRAFT:
            document = contract_snapshot(
                contract=contract, signature=signature_default(risk_tier=contract.risk_tier).value
            )
            contract.snapshot_sha256 = snapshot_store(kind="contract", document=document, at=at)
            contract.opened_at = at
        _move(contract, "open")
        contract.save(update_fields=["state", "closed_reason_code", "snapshot_sha256", "opened_at"])
        told: dict[str, Any] = {"founding": True} if founding else {}
        record_contract(contract, "contract.opened", actor=actor, at=at, snapshot=contract.snapshot_sha256, **told)
    return contract


def contract_suspend(*, actor: Actor, at: datetime, contract_id: UUID, reason_code: str, note: str = "") -> Contract:
    """Closes the contract for new attempts, from the next request on and in every process. It can be opened again."""
    return _close(
        "suspend", "contract.suspended", actor=actor, at=at, contract_id=contract_id, reason_code=reason_code, note=note
    )


def contract_retire(*, actor: Actor, at: datetime, contract_id: UUID, reason_code: str, note: str = "") -> Contract:
    """Closes the contract for good."""
    return _close(
        "retire", "contract.retired", actor=actor, at=at, contract_id=contract_id, reason_code=reason_code, note=note
    )


@violations_recorded
def contract_discard(*, actor: Actor, at: datetime, contract_id: UUID) -> None:
    """Deletes a draft without readiness decisions. Decisions are append-only, so a contract that has one stays."""
    with transaction.atomic():
        contract = contract_lock(actor=actor, contract_id=contract_id)
        if contract.state != ContractState.DRAFT:
            raise RecordImmutable(
                "The contract has left its draft. Retire it instead.", subject_type="contract", subject_id=contract.id
            )
        if ReadinessDecision.objects.filter(contract=contract).exists():
            raise WrongState("Only a draft without readiness decisions can be discarded. Retire it instead.")
        # The entry first: deleting the row clears its id.
        record_contract(contract, "contract.discarded", actor=actor, at=at)
        contract.delete()


def contract_new_version(*, actor: Actor, at: datetime, contract_id: UUID) -> Contract:
    """Creates a draft with the same content and the next version. Approvals carry over; each counts only while its
    document keeps its hash and the core fields stay the same."""
    try:
        with transaction.atomic():
            old = contract_lock(actor=actor, contract_id=contract_id)
            siblings = Contract.objects.filter(organization_id=old.organization_id, slug=old.slug)
            latest = siblings.aggregate(latest=Max("version"))["latest"]
            if siblings.filter(state=ContractState.DRAFT).exists():
                raise WrongState("There is a draft of a newer version already; change or discard that one.")
            new = _copy(old, version=latest + 1, at=at)
            record_contract(new, "contract.version_created", actor=actor, at=at, from_version=old.version)
            _carry_over(old, new, actor=actor, at=at)
    except IntegrityError as error:
        # Two people started from two different old versions. They lock different rows, so both computed the same
        # next number, and only the unique constraint stops the second one.
        raise WrongState("Somebody else made a new version just now; change or discard that one.") from error
    return new


def _copy(old: Contract, *, version: int, at: datetime) -> Contract:
    new = Contract(
        organization_id=old.organization_id,
        slug=old.slug,
        version=version,
        title=old.title,
        **{name: getattr(old, name) for name in CORE_FIELDS},
    )
    new.save(force_insert=True)
    copies = {}
    for row in ContractDocument.objects.filter(contract=old):
        made = ContractDocument.objects.create(
            contract=new, area=row.area, document=row.document, sha256=row.sha256, written_by_id=row.written_by_id
        )
        copies[made.id] = row.id
    # Without it a new version would be a way to lose the authors of what nobody has approved yet.
    authorship_copy(at=at, organization_id=old.organization_id, kind=WorkKind.DOCUMENT, copies=copies)
    return new


def record_contract(
    contract: Contract, action: str, *, actor: Actor, at: datetime, reason_code: str = "", **facts: Any
) -> None:
    """Appends one ledger entry about a contract."""
    ledger_append(
        action=action,
        organization_id=contract.organization_id,
        subject_type="contract",
        subject_id=contract.id,
        actor=actor,
        at=at,
        payload={"slug": contract.slug, "version": contract.version, **facts},
        reason_code=reason_code,
    )


def _close(
    verb: str, action: str, *, actor: Actor, at: datetime, contract_id: UUID, reason_code: str, note: str
) -> Contract:
    with transaction.atomic():
        # The send lock first, before anything is read. Without it an intent that read "open" could commit a moment
        # after this transaction, when the person has already been told that the contract is closed.
        send_lock_exclude()
        contract = contract_lock(actor=actor, contract_id=contract_id)
        reason_code_require(
            organization_id=contract.organization_id, scope=Scope.INTERVENTION, code=reason_code, note=note
        )
        _move(contract, verb, reason_code=reason_code)
        contract.save(update_fields=["state", "closed_reason_code"])
        stored = note_create(organization_id=contract.organization_id, text=note)
        said = {"note": str(stored.id), "note_sha256": stored.sha256} if stored else {}
        record_contract(contract, action, actor=actor, at=at, reason_code=reason_code, **said)
    return contract


def _move(contract: Contract, verb: str, **kwargs: Any) -> None:
    try:
        getattr(contract, verb)(**kwargs)
    except TransitionNotAllowed as error:
        raise WrongState(f"A contract that is {contract.state} cannot do this.") from error


def _check_words(core: Mapping[str, Any], documents: Mapping[str, Any]) -> None:
    """Refuses names of people, secrets and patient data in what was written: many people read a contract, and it is
    kept for years."""
    if "title" in core:
        text_check(text=core["title"], pointer="/title")
    for name in ("slug", "review_owner", "policy_slug"):
        reference_check(reference=core.get(name, ""), pointer=f"/{name}")
    for area, document in documents.items():
        content_check(content=document, pointer=f"/documents/{area}")


def _validate(documents: Mapping[str, Any], contract: Contract) -> None:
    """Checks each document, all of them together, and the effect: it must not be milder than the adapter can prove."""
    problems = [
        FieldError(p.pointer, p.message, rule=p.rule) for p in validate_documents(documents, effect=contract.effect)
    ]
    # An unknown adapter proves nothing. `once` is the strictest effect: nothing is repeated automatically.
    proven = ADAPTER_EFFECT.get(contract.adapter, Effect.ONCE)
    if STRICTNESS[contract.effect] < STRICTNESS[proven]:
        text = f"the adapter {contract.adapter} can only prove {proven.value}; declare that or something stricter"
        problems.append(FieldError("/effect", text, rule="effect_not_proven"))
    if problems:
        raise DocumentInvalid(errors=problems)


def _document(contract: Contract, area: str, document: Any, author: UUID | None) -> ContractDocument:
    return ContractDocument(
        contract=contract,
        area=area,
        document=document,
        sha256=document_sha256(document),
        written_by_id=author,
    )


def _add_author(
    contract: Contract,
    documents: Sequence[ContractDocument],
    *,
    actor: Actor,
    at: datetime,
    approved: Collection[str] = (),
) -> None:
    """`approved`: areas that were approved until this change. Those who wrote before that approval no longer count."""
    authorship_add(
        actor=actor,
        at=at,
        organization_id=contract.organization_id,
        kind=WorkKind.DOCUMENT,
        subject_ids=[row.id for row in documents],
        renewed=[row.id for row in documents if row.area in approved],
    )


def _save_documents(
    stored: Mapping[str, ContractDocument], documents: Mapping[str, Any], author: UUID | None
) -> list[str]:
    changed = []
    for area, document in documents.items():
        row, digest = stored[area], document_sha256(document)
        # Unchanged content keeps its author. Otherwise a person who saves a form without a change would become the
        # author of all ten documents and could approve none of them.
        if digest != row.sha256:
            row.document, row.sha256, row.written_by_id = document, digest, author
            row.save(update_fields=["document", "sha256", "written_by", "updated_at"])
            changed.append(area)
    return changed


def _carry_over(old: Contract, new: Contract, *, actor: Actor, at: datetime) -> None:
    """Copies the approvals of the old version. They name the decision they come from: the board compares the core
    fields of both contracts."""
    for row in readiness_board(contract=old):
        if row.status != APPROVED or row.decision is None:
            continue
        source = row.decision
        ReadinessDecision(
            contract=new,
            area=row.area,
            verdict=ReadinessVerdict.APPROVE,
            document_sha256=source.document_sha256,
            owner_group=source.owner_group,
            decided_by_ref=source.decided_by_ref,
            rationale=source.rationale,
            evidence_ref=source.evidence_ref,
            carried_from=source,
            at=at,
        ).save()
        record_contract(new, "readiness.carried_over", actor=actor, at=at, area=row.area, decision=str(source.id))
