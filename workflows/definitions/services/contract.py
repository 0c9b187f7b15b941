"""The contract of a definition that is being published: the first one, or a new version of the one before.

Runs in the publisher's transaction. The contract opens only if all ten areas are approved as they are now.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from governance.contracts.models import Contract
from governance.contracts.rules.documents import AREAS
from governance.contracts.rules.readiness import APPROVED, CORE_FIELDS
from governance.contracts.selectors import contract_documents, readiness_board
from governance.contracts.services.approvers import readiness_approvers
from governance.contracts.services.contracts import (
    contract_change,
    contract_create,
    contract_new_version,
    contract_open,
    contract_retire,
)
from governance.contracts.states import AdapterName, ContractState, RiskTier
from governance.enforcement.sql import send_lock_exclude
from governance.people.rules.roles import FIRST_TIER
from governance.policies.models import Policy
from governance.policies.services import policy_create, policy_publish
from governance.policies.states import PolicyState
from governance.tenancy.models import Organization
from reasoncodes.base.actors import Actor
from reasoncodes.base.errors import AlreadyExists, FieldError, InvalidInput
from workflows.definitions.models import WorkflowDefinition
from workflows.definitions.rules.contract_terms import effect_of, first_documents, retries_of, with_retries
from workflows.definitions.rules.document import Definition, read_definition
from workflows.definitions.selectors import contract_definition, contract_latest, slug_was_published
from workflows.definitions.services.document import document_resolved
from workflows.kinds.registry import kind_table

POLICY = "workflows"
POLICY_RULES = [
    {
        "id": "published-steps",
        "description": "Steps of a published workflow pass; its contract was approved by the ten owners.",
        "when": "true",
        "verdict": "allow",
    }
]


@dataclass(frozen=True, slots=True)
class PublishTerms:
    """What a publisher may choose. What is left out stays as in the contract before, or gets the default."""

    policy_slug: str = ""
    risk_tier: str = ""
    review_owner: str = ""

    def chosen(self) -> dict[str, str]:
        asked = {"policy_slug": self.policy_slug, "risk_tier": self.risk_tier, "review_owner": self.review_owner}
        return {name: value for name, value in asked.items() if value}


def send_lock_before_publish(*, definition: WorkflowDefinition) -> None:
    """Take the send lock if publishing may retire a contract."""
    # Retiring closes a contract, and everything that closes takes this lock first, before any row: that is the lock
    # order.
    latest = _latest(definition)
    if latest is not None and latest.state == ContractState.DRAFT:
        send_lock_exclude()


def contract_for(
    *, definition: WorkflowDefinition, organization: Organization, terms: PublishTerms, actor: Actor, at: datetime
) -> Contract:
    """The definition's contract with the right terms; opened if all ten areas are approved already."""
    parsed = read_definition(document_resolved(definition), definition_id=str(definition.id))
    latest = _latest(definition)
    policy_check(organization=organization, terms=terms)
    if latest is None:
        contract = _first(definition, parsed, organization, terms, actor=actor, at=at)
    else:
        contract = _next(definition, parsed, latest, terms, actor=actor, at=at)
    rows = readiness_board(contract=contract)
    # Approved by too few people: it stays a draft like one that lacks an approval, and the board says why.
    if all(row.status == APPROVED for row in rows) and readiness_approvers(contract=contract, rows=rows).enough:
        return contract_open(actor=actor, at=at, contract_id=contract.id)
    return contract


@dataclass(frozen=True, slots=True)
class ContractPreview:
    """What publishing would do to the contract. `missing`: areas that would wait for their owners; none: it opens."""

    slug: str
    version: int
    missing: tuple[str, ...]
    retires: Contract | None = None
    refusal: str = ""
    creates_policy: bool = False
    """Also publishes the policy `workflows`, which lets every step pass."""


def contract_preview(*, definition: WorkflowDefinition, terms: PublishTerms | None = None) -> ContractPreview:
    """Reads only, for a valid definition."""
    terms = terms or PublishTerms()
    latest, areas = _latest(definition), tuple(area.name for area in AREAS)
    if latest is None:
        creates = terms.policy_slug in {"", POLICY} and not _has_default_policy(definition.organization_id)
        return ContractPreview(definition.slug, 1, areas, creates_policy=creates)
    try:
        _only_workflows(definition, latest)
    except AlreadyExists as refusal:
        return ContractPreview(definition.slug, latest.version, (), refusal=refusal.detail)
    before = contract_definition(contract=latest)
    prepared = latest.state == ContractState.DRAFT and before is None
    parsed = read_definition(document_resolved(definition), definition_id=str(definition.id))
    core, documents = _changes_for(definition, parsed, latest, terms, before)
    again = set(areas) if set(core) & set(CORE_FIELDS) and not prepared else set(documents)
    missing = [row.area for row in readiness_board(contract=latest) if row.status != APPROVED or row.area in again]
    retires = latest if latest.state == ContractState.DRAFT and not prepared else None
    return ContractPreview(definition.slug, latest.version + (not prepared), tuple(missing), retires)


def _first(
    definition: WorkflowDefinition,
    parsed: Definition,
    organization: Organization,
    terms: PublishTerms,
    *,
    actor: Actor,
    at: datetime,
) -> Contract:
    core = {"risk_tier": RiskTier.MEDIUM.value, "review_owner": _first_tier(parsed)} | terms.chosen()
    core.setdefault("policy_slug", POLICY)
    if core["policy_slug"] == POLICY:
        _default_policy(organization, actor=actor, at=at)
    return contract_create(
        actor=actor,
        at=at,
        organization=organization,
        slug=definition.slug,
        title=definition.name,
        adapter=AdapterName.EVENT.value,
        effect=effect_of(parsed, kind_table()).value,
        documents=first_documents(parsed, kind_table()),
        **core,
    )


def _first_tier(parsed: Definition) -> str:
    """Who answers for held steps, unless the publisher says so: the first people that the definition asks."""
    kinds = kind_table()
    named = (step.params.get(kinds[step.kind].human_tier) for step in parsed.steps.values())
    return next((tier for tier in named if isinstance(tier, str)), FIRST_TIER)


def _next(
    definition: WorkflowDefinition,
    parsed: Definition,
    latest: Contract,
    terms: PublishTerms,
    *,
    actor: Actor,
    at: datetime,
) -> Contract:
    """An existing contract draft that no definition has yet, or else a new version of the latest."""
    _only_workflows(definition, latest)
    before = contract_definition(contract=latest)
    draft = latest
    if latest.state != ContractState.DRAFT or before is not None:
        if latest.state == ContractState.DRAFT:  # its definition ends with this publication, and it was never open
            contract_retire(actor=actor, at=at, contract_id=latest.id, reason_code="superseded")
        draft = contract_new_version(actor=actor, at=at, contract_id=latest.id)
    core, documents = _changes_for(definition, parsed, draft, terms, before)
    if core or documents:
        draft = contract_change(actor=actor, at=at, contract_id=draft.id, core=core, documents=documents)
    return draft


def _changes_for(
    definition: WorkflowDefinition,
    parsed: Definition,
    contract: Contract,
    terms: PublishTerms,
    before: WorkflowDefinition | None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What differs from the contract before. Owners must approve a changed core or document again."""
    wanted = {"title": definition.name, "effect": effect_of(parsed, kind_table()).value} | terms.chosen()
    core = {name: value for name, value in wanted.items() if getattr(contract, name) != value}
    asked_before = retries_of(read_definition(before.definition, definition_id="")) if before else 0
    stored: Mapping[str, Any] = contract_documents(contract=contract)["retry_and_replay"]
    # Only the first definition that asks for retries changes the document. After that, "never" is an operator's choice,
    # and a publication must not undo it.
    opened = with_retries(dict(stored), retries_of(parsed) if asked_before == 0 else 0)
    return core, {"retry_and_replay": opened} if opened != stored else {}


def _latest(definition: WorkflowDefinition) -> Contract | None:
    organization_id = definition.organization_id
    return contract_latest(organization_id=organization_id, slug=definition.slug) if organization_id else None


def _only_workflows(definition: WorkflowDefinition, latest: Contract) -> None:
    """Refuse a slug whose contract belongs to no workflow: its approvals would carry over to this one."""
    prepared = latest.state == ContractState.DRAFT
    ours = prepared or slug_was_published(organization_id=definition.organization_id, slug=definition.slug)
    if latest.adapter != AdapterName.EVENT or not ours:
        raise AlreadyExists("This slug names a contract that is no workflow's. Give the definition another slug.")


def policy_check(*, organization: Organization, terms: PublishTerms) -> None:
    """Refuses a policy that has no active version."""
    if not terms.policy_slug:
        return
    active = Policy.objects.filter(organization=organization, slug=terms.policy_slug, state=PolicyState.ACTIVE)
    if not active.exists():
        raise InvalidInput(errors=[FieldError("/policy_slug", "has no active version; every step would be denied")])


def _has_default_policy(organization_id: UUID | None) -> bool:
    # A template belongs to no organization, and is never published.
    return organization_id is not None and Policy.objects.filter(organization_id=organization_id, slug=POLICY).exists()


def _default_policy(organization: Organization, *, actor: Actor, at: datetime) -> None:
    """Create the policy once. If somebody has archived it, it stays archived. Published here and not proposed: whoever
    confirms the definition has seen it in the proposal."""
    if not _has_default_policy(organization.id):
        policy = policy_create(
            actor=actor, at=at, organization=organization, slug=POLICY, title="Workflow steps", rules=POLICY_RULES
        )
        policy_publish(actor=actor, at=at, policy_id=policy.id)
