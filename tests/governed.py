"""Set-up for tests that need a contract: approved by its owners and opened by an operator, through the services."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.utils import timezone

from governance.contracts.models import Contract, ContractDocument, ReadinessDecision
from governance.contracts.rules.documents import AREAS
from governance.contracts.services.contracts import contract_create, contract_open
from governance.contracts.services.readiness import readiness_decide
from governance.contracts.states import ReadinessVerdict
from governance.ledger.services import actor_reference, ledger_entry_build
from governance.policies.models import Policy
from governance.policies.services import policy_create, policy_publish
from governance.sql.insert import insert_together
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast

# Lately: what was done then and is asked about now has not run out.
AT = timezone.now().replace(microsecond=0) - timedelta(hours=1)
ALLOW = [{"id": "all", "when": "true", "verdict": "allow"}]
HOLD = [
    {
        "id": "hold",
        "when": "true",
        "verdict": "needs_approval",
        "tier": "customer_clinician",
        "approvals_required": 1,
        "expires_in_seconds": 3600,
    }
]
DENY = [{"id": "never", "when": "true", "verdict": "deny", "reason_code": "policy_denied"}]


def make_policy(
    cast: Cast, *, rules: list[dict[str, Any]] | None = None, slug: str = "standard", publish: bool = True
) -> Policy:
    actor = cast.actor(cast.operator, [cast.organization])
    with every_tenant():
        policy = policy_create(
            actor=actor, at=AT, organization=cast.organization, slug=slug, title=slug.title(), rules=rules or ALLOW
        )
        return policy_publish(actor=actor, at=AT, policy_id=policy.id) if publish else policy


def make_contract(
    cast: Cast, *, slug: str = "close-case", documents: Mapping[str, Any] | None = None, **core: Any
) -> Contract:
    # A caller's risk is at least the contract's: with the default, high, every test would be about high risk.
    core.setdefault("risk_tier", "low")
    with every_tenant():
        return contract_create(
            actor=cast.actor(cast.operator, [cast.organization]),
            at=AT,
            organization=cast.organization,
            slug=slug,
            title=slug.title(),
            review_owner="customer_clinician",
            policy_slug=core.pop("policy_slug", "standard"),
            documents=documents,
            **core,
        )


def approve(cast: Cast, contract: Contract, *areas: str, verdict: ReadinessVerdict = ReadinessVerdict.APPROVE) -> None:
    """Each area by Olga, who is a member of every owning group, and the last one by Owen: one person is not enough. All
    ten when none is named."""
    if not areas and verdict is ReadinessVerdict.APPROVE:
        _approve_all(cast, contract)
        return
    with every_tenant():
        for area in AREAS:
            if not areas or area.name in areas:
                owner = cast.second_owner if area is AREAS[-1] else cast.owner
                readiness_decide(
                    actor=cast.actor(owner, [cast.organization]),
                    at=AT,
                    contract_id=contract.id,
                    area=area.name,
                    verdict=verdict,
                    rationale="Looked at it",
                )


def _approve_all(cast: Cast, contract: Contract) -> None:
    """What ten calls of `readiness_decide` leave on record, in one statement: nearly every test begins with it."""
    people = [cast.actor(user, [cast.organization]) for user in (cast.owner, cast.second_owner)]
    decisions, entries = [], []
    with every_tenant():
        references = [actor_reference(actor) for actor in people]
        documents = {row.area: row for row in ContractDocument.objects.filter(contract=contract)}
        for area in AREAS:
            actor, reference = people[area is AREAS[-1]], references[area is AREAS[-1]]
            decision = ReadinessDecision(
                contract=contract,
                area=area.name,
                verdict=ReadinessVerdict.APPROVE,
                document_sha256=documents[area.name].sha256,
                owner_group=area.owner_group,
                decided_by_ref=reference,
                rationale="Looked at it",
                at=AT,
            )
            facts = {"area": area.name, "document": decision.document_sha256, "decision": str(decision.id)}
            entry = ledger_entry_build(
                action="readiness.approved",
                organization_id=contract.organization_id,
                subject_type="contract",
                subject_id=contract.id,
                actor=actor,
                at=AT,
                payload={"slug": contract.slug, "version": contract.version, **facts},
                actor_ref=reference,
            )
            decisions.append(decision)
            entries.append(entry)
        insert_together(decisions, entries)


def open_contract(cast: Cast, *, rules: list[dict[str, Any]] | None = None, **kwargs: Any) -> Contract:
    slug = kwargs.get("policy_slug", "standard")
    with every_tenant():
        if not Policy.objects.filter(organization=cast.organization, slug=slug, state="active").exists():
            make_policy(cast, rules=rules, slug=slug)
        contract = make_contract(cast, **kwargs)
        approve(cast, contract)
        return contract_open(actor=cast.actor(cast.operator, [cast.organization]), at=AT, contract_id=contract.id)
