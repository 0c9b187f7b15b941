"""The owners' decisions on the ten areas: approve, reject, revoke. Decisions are append-only, and the latest one of an
area counts."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from governance.authorship.selectors import authors_of
from governance.authorship.states import WorkKind
from governance.boundary.errors import MetadataBoundary
from governance.boundary.services import reference_check, text_check
from governance.contracts.errors import NotAnOwner
from governance.contracts.models import Contract, ContractDocument, ReadinessDecision
from governance.contracts.rules.documents import area as area_of
from governance.contracts.rules.readiness import APPROVED
from governance.contracts.selectors import contract_lock, readiness_board
from governance.contracts.services.contracts import record_contract
from governance.contracts.states import ContractState, ReadinessVerdict
from governance.enforcement.sql import send_lock_exclude
from governance.ledger.services import actor_reference
from governance.people.selectors.people import has_role
from governance.violations.errors import OwnWork
from governance.violations.services import violations_recorded
from reasoncodes.base.actors import Actor, ActorKind
from reasoncodes.base.errors import DomainError, WrongState

ACTION_OF = {
    ReadinessVerdict.APPROVE: "readiness.approved",
    ReadinessVerdict.REJECT: "readiness.rejected",
    ReadinessVerdict.REVOKE: "readiness.revoked",
}


@violations_recorded
def readiness_decide(
    *,
    actor: Actor,
    at: datetime,
    contract_id: UUID,
    area: str,
    verdict: ReadinessVerdict,
    rationale: str,
    evidence_ref: str = "",
    seen_sha256: str = "",
) -> ReadinessDecision:
    """Records the decision of a member of the owning group on the document as it is now. With `seen_sha256` it is
    refused if the document is not the one that the person saw."""
    text_check(text=rationale, pointer="/rationale")
    reference_check(reference=evidence_ref, pointer="/evidence_ref")
    with transaction.atomic():
        # Rejecting or revoking may close the contract. Without the send lock, taken before anything is read, an intent
        # that read "open" could commit a moment later.
        if verdict is not ReadinessVerdict.APPROVE:
            send_lock_exclude()
        contract = contract_lock(actor=actor, contract_id=contract_id)
        # Both rows are locked: the approval stores the document's hash, and it must not change before the commit.
        document = ContractDocument.objects.select_for_update(no_key=True).get(contract=contract, area=area)
        owner_group = area_of(area).owner_group
        # Inside the transaction, and not in the view: a role that was revoked before this moment does not count.
        _check(actor, contract, document, owner_group, verdict)
        if seen_sha256 and seen_sha256 != document.sha256:
            raise WrongState("The document has changed since you looked at it. Look again.")
        decision = ReadinessDecision(
            contract=contract,
            area=area,
            verdict=verdict,
            document_sha256=document.sha256,
            owner_group=owner_group,
            decided_by_ref=actor_reference(actor),
            rationale=rationale,
            evidence_ref=evidence_ref,
            at=at,
        )
        decision.save()
        told = {"area": area, "document": document.sha256, "decision": str(decision.id)}
        record_contract(contract, ACTION_OF[verdict], actor=actor, at=at, **told)
        if verdict is not ReadinessVerdict.APPROVE and contract.state == ContractState.OPEN:
            _close_intake(contract, actor=actor, at=at)
    return decision


def _check(
    actor: Actor, contract: Contract, document: ContractDocument, owner_group: str, verdict: ReadinessVerdict
) -> None:
    subject: dict[str, Any] = {
        "subject_type": "contract",
        "subject_id": contract.id,
        "organization_id": contract.organization_id,
    }
    is_owner = (
        actor.kind is ActorKind.PERSON
        and actor.id is not None
        and has_role(user_id=actor.id, organization_id=contract.organization_id, role=f"owner:{owner_group}")
    )
    if not is_owner:
        raise NotAnOwner(f"This area is owned by {owner_group}.", **subject)
    if verdict is ReadinessVerdict.APPROVE and actor.id in authors_of(kind=WorkKind.DOCUMENT, subject_id=document.id):
        raise OwnWork("You wrote to this document; another member of the group approves it.", **subject)
    if contract.state == ContractState.RETIRED:
        raise WrongState("The contract is retired.")
    status = next(row.status for row in readiness_board(contract=contract) if row.area == document.area)
    if verdict is ReadinessVerdict.APPROVE and status == APPROVED:
        raise WrongState("This document is approved already.")
    if verdict is ReadinessVerdict.REVOKE and status != APPROVED:
        raise WrongState("There is no approval of this document to revoke.")
    if verdict is ReadinessVerdict.REJECT and status == APPROVED:
        raise WrongState("This document is approved; revoke the approval instead.")


def _close_intake(contract: Contract, *, actor: Actor, at: datetime) -> None:
    """Suspends the contract, because an approval is missing now. It takes no attempt from the next request on."""
    contract.suspend(reason_code="readiness_revoked")
    contract.save(update_fields=["state", "closed_reason_code"])
    record_contract(contract, "contract.suspended", actor=actor, at=at, reason_code="readiness_revoked")


def readiness_approve_seen(
    *, actor: Actor, at: datetime, contract_id: UUID, seen: Mapping[str, str], rationale: str
) -> dict[str, str]:
    """Approves several areas, each in its own transaction: one that is refused does not undo the others. `seen` has the
    hash of each document as it was shown. Returns the refusal per area, empty if it was approved."""
    found: dict[str, str] = {}
    for area, sha256 in seen.items():
        try:
            readiness_decide(
                actor=actor,
                at=at,
                contract_id=contract_id,
                area=area,
                verdict=ReadinessVerdict.APPROVE,
                rationale=rationale,
                seen_sha256=sha256,
            )
            found[area] = ""
        except MetadataBoundary:  # about the rationale, which is the same for all areas: the form shows it once
            raise
        except DomainError as refusal:
            found[area] = refusal.detail
    return found
