"""Decisions: gather the environment, let the pure package evaluate, write down everything it was computed from."""

import marshal
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any
from uuid import UUID

from django.db import transaction

from governance.contracts.models import Contract, ContractDocument
from governance.enforcement.models import EnforcementDecision, Snapshot, SnapshotBroken, moment_text, snapshot_load
from governance.enforcement.rules import Decision, Environment, decision_document, evaluate, storable_request
from governance.enforcement.rules.frames import AS_FRAMED, frame
from governance.enforcement.selectors.arrival import IntakeFacts
from governance.ledger.rules.entry import canonical_sha256
from governance.people.selectors import Credential
from governance.policies.models import Policy
from governance.regions.rules import RegionError, load_profiles, merge, tighten, years_later
from governance.retention.selectors.retention import erased_by
from governance.sql.statements import new_row
from reasoncodes.base.ids import uuid7


def snapshot_store(*, kind: str, document: dict[str, Any], at: datetime) -> str:
    """The document's hash; the row is inserted when it is new. Safe when two processes do it at once."""
    digest = canonical_sha256(document)
    Snapshot.objects.bulk_create([Snapshot(sha256=digest, kind=kind, document=document, at=at)], ignore_conflicts=True)
    return digest


_known_here: set[str] = set()


def _snapshot_ensure(*, sha256: str, kind: str, document: dict[str, Any], at: datetime) -> None:
    """Stored once; remembered per process, and only after the commit that stored it."""
    if sha256 not in _known_here:
        row = Snapshot(sha256=sha256, kind=kind, document=document, at=at)
        Snapshot.objects.bulk_create([row], ignore_conflicts=True)
        transaction.on_commit(lambda: _known_here.add(sha256))


def frame_sha256(frame: dict[str, Any]) -> str:
    """Remembered: canonical JSON takes ten times as long as comparing the frame with those of earlier decisions."""
    try:
        return _sha256_of(marshal.dumps(frame, 2))
    except ValueError:  # something that only looks like plain text
        return canonical_sha256(frame)


@lru_cache(maxsize=1024)
def _sha256_of(marshalled: bytes) -> str:
    """Equal bytes are equal content; version 2 writes the same content the same way."""
    return canonical_sha256(marshal.loads(marshalled))  # noqa: S302  # our own, from one line above


def contract_snapshot(*, contract: Contract) -> dict[str, Any]:
    """Everything of a contract that a decision may depend on."""
    documents = ContractDocument.objects.filter(contract=contract).order_by("area")
    return {
        "format": "holdpoint-contract-v1",
        "id": str(contract.id),
        "organization_id": str(contract.organization_id),
        "slug": contract.slug,
        "version": contract.version,
        "effect": contract.effect,
        "risk_tier": contract.risk_tier,
        "adapter": contract.adapter,
        "review_owner": contract.review_owner,
        "policy_slug": contract.policy_slug,
        "documents": {row.area: row.document for row in documents},
    }


EXPIRY_DEFAULT = {"expires_in_seconds": 86400}
COUNT_DEFAULT = {"approvals_required": 1}


def _normalized_rule(rule: dict[str, Any]) -> dict[str, Any]:
    """A rule that holds says how many must release it and until when; unsaid, one person (of each tier) in a day."""
    if rule.get("verdict") != "needs_approval":
        return rule
    if "buckets" in rule:
        return EXPIRY_DEFAULT | rule | {"buckets": [COUNT_DEFAULT | bucket for bucket in rule["buckets"]]}
    return COUNT_DEFAULT | EXPIRY_DEFAULT | rule


def policy_snapshot(*, policy: Policy) -> dict[str, Any]:
    return {
        "format": "holdpoint-policy-v1",
        "id": str(policy.id),
        "slug": policy.slug,
        "version": policy.version,
        "rules": [_normalized_rule(rule) for rule in policy.rules],
    }


@dataclass(frozen=True, slots=True)
class Computed:
    """A decision that is not on record yet. `request` is what may be stored: offending values are withheld."""

    decision: Decision
    request: dict[str, Any]
    facts: dict[str, Any]
    intake: IntakeFacts
    region: dict[str, Any] | None

    def retention_until(self, at: datetime) -> datetime | None:
        """The stamp of what is admitted now. None without a region in force: unknown, so kept."""
        return years_later(at, years=self.region["terms"]["retention_years"]) if self.region else None


def retention_stamp(*, regions: list[str], contract_sha256: str, at: datetime) -> datetime | None:
    """As it would be for an attempt under this contract; before it was opened, as the profiles alone say."""
    if contract_sha256:
        region, _ = _region(tuple(regions), contract_sha256)
        return years_later(at, years=region["terms"]["retention_years"]) if region else None
    try:
        return years_later(at, years=merge(load_profiles().select(regions)).terms.retention_years)
    except RegionError:
        return None


def decision_compute(
    *,
    credential: Credential,
    intake: IntakeFacts,
    request: dict[str, Any],
    at: datetime,
    deployment_region: str,
    throttle: Mapping[str, Any],
    concurrency: Mapping[str, Any],
) -> Computed:
    """Reads nothing but cached snapshots; writes nothing."""
    contract = _load(intake.contract.snapshot_sha256)
    region, region_sha256 = (
        _region(tuple(credential.organization.regions), intake.contract.snapshot_sha256) if contract else (None, None)
    )
    facts = {
        "format": "holdpoint-environment-v1",
        "at": moment_text(at),
        "contract_state": intake.contract.state,
        "contract_sha256": intake.contract.snapshot_sha256 or None,
        "policy_sha256": intake.policy_sha256 or None,
        "region_sha256": region_sha256,
        "deployment_region": deployment_region,
        "organization": {
            "id": str(credential.organization.id),
            "status": credential.organization.status,
            "regions": list(credential.organization.regions),
        },
        "caller": {
            "kind": credential.actor.kind.value,
            "id": str(credential.actor.id),
            "status": credential.key.service_account.status,
            "scopes": sorted(credential.actor.scopes),
        },
        "shutdowns": [dict(entry) for entry in intake.shutdowns],
        "throttle": dict(throttle),
        "concurrency": dict(concurrency),
        "failures": {},
    }
    environment = Environment(facts=facts, contract=contract, policy=_load(intake.policy_sha256), region=region)
    # Processor time, not the wall clock: a busy machine is not a slow evaluator.
    decision = evaluate(request, environment, stopwatch=time.thread_time)
    facts["failures"] = dict(decision.failures)
    return Computed(decision, storable_request(request, decision), facts, intake, region)


def decision_row(*, computed: Computed, at: datetime) -> EnforcementDecision:
    """Unsaved: the caller inserts it with what it decides about, and names it in that ledger entry."""
    decision, contract = computed.decision, computed.intake.contract
    if computed.region is not None:
        _snapshot_ensure(sha256=computed.facts["region_sha256"], kind="region", document=computed.region, at=at)
    document = decision_document(decision)
    return new_row(
        EnforcementDecision,
        id=uuid7(),
        organization_id=contract.organization_id,
        contract_id=contract.id,
        verdict=decision.verdict.value,
        reason_code=decision.reason_code or "",
        rule_id=decision.rule_id or "",
        policy_version=computed.intake.policy_version,
        approval=document["approval"],
        request_sha256=canonical_sha256(computed.request),
        environment_sha256=canonical_sha256(computed.facts),
        at=at,
        **_stored(computed, document["results"], at=at),
    )


def _stored(computed: Computed, results: list[Any], *, at: datetime) -> dict[str, Any]:
    """Request, environment and results: what differs, in a frame that is stored once, or all of it."""
    framed = frame(computed.decision, request=computed.request, facts=computed.facts, results=results)
    if framed is None:
        whole = {"request": computed.request, "environment": computed.facts}
        return whole | {"results": results, "frame_sha256": None}
    sha256 = frame_sha256(framed.frame)
    _snapshot_ensure(sha256=sha256, kind="frame", document=framed.frame, at=at)
    return {
        "request": framed.values,
        "environment": AS_FRAMED,
        "results": AS_FRAMED,
        "frame_sha256": bytes.fromhex(sha256),
    }


@dataclass(frozen=True, slots=True)
class Replay:
    """What re-evaluation found: no differences means that the record and the rules still agree."""

    differences: tuple[str, ...]
    erased_by: UUID | None = None
    """The order that erased its request: there is nothing to re-evaluate."""

    @property
    def agrees(self) -> bool:
        return not self.differences


def decision_replay(*, row: EnforcementDecision) -> Replay:
    """Re-evaluate from the stored request, environment and snapshots alone."""
    try:
        environment, request, results = stored_environment(row), row.request, row.results
        facts = row.environment
    except SnapshotBroken as error:
        return Replay((f"snapshot {error} is missing or altered",))
    if request is None and (order := erased_by(subject_id=row.id)):
        return Replay((), erased_by=order)
    again = decision_document(evaluate(request, environment))
    stored = {
        "verdict": row.verdict,
        "reason_code": row.reason_code or None,
        "rule_id": row.rule_id or None,
        "results": results,
        "approval": row.approval,
    }
    differences = [name for name, value in stored.items() if again[name] != value]
    differences += _misplaced(row, environment)
    if canonical_sha256(request) != row.request_sha256:
        differences.append("request_sha256")
    if canonical_sha256(facts) != row.environment_sha256:
        differences.append("environment_sha256")
    return Replay(tuple(differences))


def _misplaced(row: EnforcementDecision, environment: Environment) -> list[str]:
    """Columns that repeat what the environment says, for searching: they must not tell another story."""
    facts, contract, policy = environment.facts, environment.contract, environment.policy
    organization = facts.get("organization")
    said = {
        "organization": isinstance(organization, dict) and organization.get("id") == str(row.organization_id),
        "contract": contract is None or str(row.contract_id) == contract.get("id"),
        "policy_version": row.policy_version == (policy.get("version") if policy is not None else None),
        "at": moment_text(row.at) == facts.get("at"),
    }
    return [name for name, agrees in said.items() if not agrees]


def stored_environment(row: EnforcementDecision) -> Environment:
    """As it was. Raises SnapshotBroken when something that it names is gone or altered."""
    facts = row.environment
    facts = facts if isinstance(facts, dict) else {}  # altered rows are read too, by a replay
    return Environment(
        facts=facts,
        contract=_load(facts.get("contract_sha256")),
        policy=_load(facts.get("policy_sha256")),
        region=_load(facts.get("region_sha256")),
    )


def redecide(*, row: EnforcementDecision, policy: Mapping[str, Any], policy_sha256: str) -> Decision:
    """As if this policy had been the active one (simulation). A failure of the old policy says nothing about it."""
    facts = row.environment
    failures = {name: failure for name, failure in facts.get("failures", {}).items() if name != "policy"}
    environment = Environment(
        facts=facts | {"policy_sha256": policy_sha256, "failures": failures},
        contract=_load(facts.get("contract_sha256")),
        policy=policy,
        region=_load(facts.get("region_sha256")),
    )
    return evaluate(row.request, environment)


def _load(sha256: str | None) -> Any:
    return snapshot_load(str(sha256)) if sha256 else None


@lru_cache(maxsize=512)
def _region(regions: tuple[str, ...], contract_sha256: str) -> tuple[dict[str, Any] | None, str | None]:
    """The profile in force for an organization under a contract, and its address; None when it has none (which
    denies)."""
    stance = snapshot_load(contract_sha256)["documents"]["regional_compliance"]
    try:
        document = tighten(merge(load_profiles().select(regions)), stance=stance).document()
    except RegionError:
        return None, None
    return document, canonical_sha256(document)
