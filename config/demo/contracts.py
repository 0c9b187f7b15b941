"""The demo's policies and contracts: one for each thing that can happen to an attempt."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from governance.contracts.models import Contract
from governance.contracts.rules.documents import AREAS, ENVELOPE_FIELDS, default_documents
from governance.contracts.rules.starters import HOLD, METADATA
from governance.contracts.services.contracts import contract_create, contract_open
from governance.contracts.services.readiness import readiness_decide
from governance.contracts.states import ContractState, ReadinessVerdict
from governance.people.models import User
from governance.policies.models import Policy
from governance.policies.services import policy_create, policy_publish
from governance.policies.states import PolicyState
from governance.tenancy.models import Organization
from reasoncodes.base.actors import Actor, ActorKind

POLICIES: dict[str, list[dict[str, Any]]] = {
    "demo-allow": [{"id": "allow", "when": "true", "verdict": "allow", "description": "Everything passes."}],
    "demo-hold": [HOLD | {"id": "one-clinician", "approvals_required": 1}],
    "demo-two-person": [HOLD | {"id": "two-clinicians", "approvals_required": 2}],
    "demo-deny": [{"id": "never", "when": "true", "verdict": "deny", "reason_code": "policy_denied"}],
}


@dataclass(frozen=True, slots=True)
class DemoContract:
    title: str
    policy: str
    adapter: str = "external"
    effect: str = "once"
    opened: bool = True
    changes: dict[str, dict[str, Any]] = field(default_factory=dict)


CONTRACTS: dict[str, DemoContract] = {
    "allow": DemoContract("Passes at once", "demo-allow", effect="idempotent"),
    "hold": DemoContract("Waits for one clinician", "demo-hold"),
    "two_person": DemoContract("Waits for two clinicians", "demo-two-person"),
    "deny": DemoContract("Is always denied", "demo-deny"),
    "closed": DemoContract("Waits for its owners' approval", "demo-allow", opened=False),
    "timeline": DemoContract(
        "Every call is a new attempt", "demo-allow", changes={"idempotency_key_policy": {"mode": "timeline"}}
    ),
    "once_http": DemoContract("Calls an HTTP target at most once", "demo-allow", adapter="http"),
    "idempotent_http": DemoContract(
        "Calls an HTTP target that deduplicates",
        "demo-allow",
        adapter="http",
        effect="idempotent",
        changes={"retry_and_replay": {"automatic_retries": "when_safe", "max_attempts": 5}},
    ),
    "queue": DemoContract(
        "One at a time, the others wait",
        "demo-allow",
        effect="idempotent",
        changes={"concurrency_and_locks": {"when_busy": "queue"}},
    ),
}


def _documents_for(contract: DemoContract) -> dict[str, Any]:
    """The safe defaults, loosened for trying things: no small caps, wide throttles, a few metadata fields."""
    documents = default_documents()
    # The demo organization is a clinic: what it lets services do is about its patients.
    documents["attempt_identity_envelope"]["required"] = list(ENVELOPE_FIELDS)
    limits = documents["concurrency_and_locks"]["limits"]
    limits |= {"per_context": None, "per_workflow": 1 if contract.changes.get("concurrency_and_locks") else None}
    limits["per_tenant"] = None
    for limit in documents["throttles_and_misuse"]["limits"]:
        limit["limit"] = 100_000
    documents["throttles_and_misuse"]["misuse"] |= {"strikes": 100, "window_seconds": 60}
    documents["failure_quarantine"]["incident_required"] = False
    documents["metadata_boundary"]["schema"]["properties"] = dict(METADATA)
    for area, change in contract.changes.items():
        documents[area] |= change
    return documents


def contracts_ensure(*, organization: Organization, at: datetime) -> dict[str, dict[str, Any]]:
    """Creates what is missing: written by the operator, approved by the owners of the ten areas, opened by the
    operator."""
    operator = _person(User.objects.get(username="operator"), organization)
    for slug, rules in POLICIES.items():
        if not Policy.objects.filter(organization=organization, slug=slug, state=PolicyState.ACTIVE).exists():
            policy = policy_create(
                actor=operator, at=at, organization=organization, slug=slug, title=slug.capitalize(), rules=rules
            )
            policy_publish(actor=operator, at=at, policy_id=policy.id)
    found = {}
    for name, wanted in CONTRACTS.items():
        slug = f"demo-{name.replace('_', '-')}"
        contract = Contract.objects.filter(organization=organization, slug=slug).order_by("version").first()
        if contract is None:
            contract = contract_make(organization, slug=slug, wanted=wanted, at=at)
        found[name] = {"id": str(contract.id), "slug": contract.slug, "version": contract.version}
    return found


def contract_make(organization: Organization, *, slug: str, wanted: DemoContract, at: datetime) -> Contract:
    operator = _person(User.objects.get(username="operator"), organization)
    contract = contract_create(
        actor=operator,
        at=at,
        organization=organization,
        slug=slug,
        title=wanted.title,
        effect=wanted.effect,
        risk_tier="low",
        adapter=wanted.adapter,
        review_owner="customer_clinician",
        policy_slug=wanted.policy,
        documents=_documents_for(wanted),
    )
    for area in AREAS if wanted.opened else AREAS[:4]:
        owner = User.objects.get(username=f"owner_{area.owner_group.replace('-', '_')}")
        readiness_decide(
            actor=_person(owner, organization),
            at=at,
            contract_id=contract.id,
            area=area.name,
            verdict=ReadinessVerdict.APPROVE,
            rationale="Approved for the demo",
        )
    if wanted.opened and contract.state == ContractState.DRAFT:
        return contract_open(actor=operator, at=at, contract_id=contract.id)
    return contract


def _person(user: User, organization: Organization) -> Actor:
    return Actor(ActorKind.PERSON, user.id, frozenset({organization.id}))
