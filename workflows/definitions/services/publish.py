"""Publishes a definition in one transaction: validates it, replaces the active one, and prepares its contract."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import transaction

from governance.boundary.services import text_check
from governance.contracts.models import Contract
from governance.contracts.rules.readiness import AreaStatus
from governance.enforcement.services import snapshot_store
from governance.violations.services import violations_recorded
from reasoncodes.base.actors import Actor
from reasoncodes.base.errors import WrongState
from workflows.definitions.errors import DefinitionInvalid
from workflows.definitions.models import WorkflowDefinition
from workflows.definitions.rules.starting import takes_cases
from workflows.definitions.selectors import (
    definition_get,
    definition_lock,
    definitions_replaced,
    missing_areas,
    organization_lock,
)
from workflows.definitions.services.change import definition_archive_locked
from workflows.definitions.services.contract import PublishTerms, contract_for, send_lock_before_publish
from workflows.definitions.services.document import as_errors, document_findings, document_resolved, snapshot_document
from workflows.definitions.services.record import content_of, definition_record
from workflows.definitions.states import DefinitionStatus


@dataclass(frozen=True, slots=True)
class Published:
    """`missing`: the contract's areas that wait for their owners. If there are none, the contract is open."""

    definition: WorkflowDefinition
    contract: Contract
    missing: tuple[AreaStatus, ...]
    archived: WorkflowDefinition | None  # the one with its slug, else the one that took its product's cases


@violations_recorded
def definition_publish(
    *, actor: Actor, at: datetime, definition_id: UUID, terms: PublishTerms | None = None, reason: str = ""
) -> Published:
    """Refused with its findings if the definition is invalid."""
    # Lock order: send lock, organization, definitions, contract. The organization's lock serializes publications;
    # without it two could both become the active definition of a product, and the second would fail at the unique
    # index.
    text_check(text=reason, pointer="/reason")
    with transaction.atomic():
        send_lock_before_publish(definition=definition_get(definition_id=definition_id))
        definition = definition_lock(actor=actor, definition_id=definition_id)
        if definition.state != DefinitionStatus.DRAFT:
            raise WrongState(f"A definition that is {definition.state} cannot be published.")
        findings = document_findings(organization_id=definition.organization_id, document=definition.definition)
        if findings:
            raise DefinitionInvalid(errors=as_errors(findings))
        replaced = _make_room(definition, actor=actor, at=at)
        organization = organization_lock(actor=actor, organization_id=definition.organization_id)
        contract = contract_for(
            definition=definition, organization=organization, terms=terms or PublishTerms(), actor=actor, at=at
        )
        _activate(definition, contract, actor=actor, at=at, reason=reason)
        return Published(definition, contract, missing_areas(contract=contract), replaced)


def _make_room(definition: WorkflowDefinition, *, actor: Actor, at: datetime) -> WorkflowDefinition | None:
    """Archive the active definitions that it replaces. Their runs continue under their own contract."""
    archived = []
    for active in definitions_replaced(definition=definition):
        locked = definition_lock(actor=actor, definition_id=active.id)
        definition_archive_locked(locked, actor=actor, at=at, reason="", facts={"replaced_by": str(definition.id)})
        archived.append(locked)
    return next(iter(archived), None)


def _activate(definition: WorkflowDefinition, contract: Contract, *, actor: Actor, at: datetime, reason: str) -> None:
    before = content_of(definition)
    # What its calls resolve to is part of the stored version: a run and its replay never ask the registry.
    document = snapshot_document(document_resolved(definition))
    definition.snapshot_sha256 = snapshot_store(kind="definition", document=document, at=at)
    definition.contract = contract
    definition.takes_cases = takes_cases(definition.definition)
    definition.published_at = definition.updated_at = at
    definition.publish()
    definition.save(update_fields=["state", "contract", "snapshot_sha256", "takes_cases", "published_at", "updated_at"])
    facts = {"contract": str(contract.id), "contract_version": contract.version, "contract_state": contract.state}
    definition_record(definition, "definition.published", actor=actor, at=at, before=before, reason=reason, **facts)
