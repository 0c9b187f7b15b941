"""Computes decisions, builds their rows and evaluates stored decisions again. Collects the environment and stores the
snapshots; the rules themselves are in `rules/`."""

import marshal
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from typing import Any
from uuid import UUID

from django.db import transaction

from governance.boundary.rules import CURRENT
from governance.contracts.models import Contract, ContractDocument
from governance.enforcement.configured import standby_regions
from governance.enforcement.models import EnforcementDecision, Snapshot, SnapshotBroken, moment_text, snapshot_load
from governance.enforcement.rules import Decision, Environment, decision_document, evaluate, storable_request
from governance.enforcement.rules.frames import AS_FRAMED, frame
from governance.enforcement.rules.names import TAKEN
from governance.enforcement.selectors import IntakeFacts
from governance.ledger.rules.entry import canonical_sha256
from governance.people.selectors.people import Credential
from governance.policies.models import Policy
from governance.regions.rules import RegionError, load_profiles, merge, tighten, years_later
from governance.retention.selectors.retention import erased_by
from governance.sql.statements import new_row
from reasoncodes.base.ids import uuid7


def snapshot_store(*, kind: str, document: dict[str, Any], at: datetime) -> str:
    """Inserts the document if it is new, and returns its hash."""
    digest = canonical_sha256(document)
    # Two processes may store the same document at the same time. Under its own hash it is the same row, so the second
    # insert is dropped instead of failing the transaction.
    Snapshot.objects.bulk_create([Snapshot(sha256=digest, kind=kind, document=document, at=at)], ignore_conflicts=True)
    return digest


# Hashes of snapshots that this process knows to be committed. Without it every decision would try to insert its frame
# and its region again.
_known_here: set[str] = set()


def _snapshot_ensure(*, sha256: str, kind: str, document: dict[str, Any], at: datetime) -> None:
    """Inserts the snapshot unless this process knows that it is stored."""
    if sha256 not in _known_here:
        row = Snapshot(sha256=sha256, kind=kind, document=document, at=at)
        Snapshot.objects.bulk_create([row], ignore_conflicts=True)
        # Only after the commit: if this transaction is rolled back, the row is gone, and a later decision that
        # skipped the insert would name a snapshot that does not exist.
        transaction.on_commit(lambda: _known_here.add(sha256))


def frame_sha256(frame: dict[str, Any]) -> str:
    """The hash of a frame's canonical JSON, from a cache when the same frame was hashed before."""
    # Almost all decisions share a few frames. Looking one up by its marshalled bytes takes a tenth of the time that
    # canonical JSON takes.
    try:
        return _sha256_of(marshal.dumps(frame, 2))
    except ValueError:  # marshal knows exact types only: a subclass of str, for example, is refused
        return canonical_sha256(frame)


@lru_cache(maxsize=1024)
def _sha256_of(marshalled: bytes) -> str:
    # Marshal version 2, because later versions write back references that depend on object identity: equal frames
    # would have different bytes, and the cache would miss.
    return canonical_sha256(marshal.loads(marshalled))  # noqa: S302  # our own, from one line above


def contract_snapshot(*, contract: Contract, signature: str) -> dict[str, Any]:
    """Everything of a contract that a decision may depend on. Its hash is stored: a changed key or value changes what
    every later decision names. `signature`: how votes are signed where the envelope document does not say."""
    rows = ContractDocument.objects.filter(contract=contract).order_by("area")
    documents = {row.area: row.document for row in rows}
    return {
        "format": "holdpoint-contract-v1",
        "id": str(contract.id),
        "organization_id": str(contract.organization_id),
        "slug": contract.slug,
        "version": contract.version,
        "effect": contract.effect,
        "risk_tier": contract.risk_tier,
        # Older snapshots do not have it: there the tier was the highest that a caller could declare.
        "risk_tier_is": "least",
        # Resolved here: a later change of the installation's default must not change what open contracts ask for.
        "signature": documents.get("attempt_identity_envelope", {}).get("signature", signature),
        "adapter": contract.adapter,
        "review_owner": contract.review_owner,
        "policy_slug": contract.policy_slug,
        "documents": documents,
    }


EXPIRY_DEFAULT = {"expires_in_seconds": 86400}
COUNT_DEFAULT = {"approvals_required": 1}


def _normalized_rule(rule: dict[str, Any]) -> dict[str, Any]:
    """The rule with its defaults filled in: a rule that holds needs one approval (of each tier) within a day, unless
    it says otherwise."""
    # In the snapshot and not in the evaluator: a later change of the defaults must not change stored decisions.
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
    """A decision that is not stored yet. `request` is the form that may be stored: values that the boundary refused
    are left out."""

    decision: Decision
    request: dict[str, Any]
    facts: dict[str, Any]
    intake: IntakeFacts
    region: dict[str, Any] | None
    act: "Act | None" = None

    def retention_until(self, at: datetime) -> datetime | None:
        """Until when a record of this moment is kept. None if no region is in force: the time is unknown, so the
        record is kept."""
        return years_later(at, years=self.region["terms"]["retention_years"]) if self.region else None


def retention_stamp(*, regions: list[str], contract_sha256: str, at: datetime) -> datetime | None:
    """Until when a record under this contract is kept. Before the contract was first opened it has no snapshot, and
    the regional profiles alone decide."""
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
    effect: Mapping[str, Any] | None = None,
) -> Computed:
    """Evaluates the request. Reads only snapshots, normally from the cache, and writes nothing."""
    caller = {
        "kind": credential.actor.kind.value,
        "id": str(credential.actor.id),
        "status": credential.key.service_account.status,
        "scopes": sorted(credential.actor.scopes),
    }
    more = {"caller": caller, "throttle": dict(throttle), "concurrency": dict(concurrency)}
    more |= {"effect": dict(effect)} if effect is not None else {}
    return _compute(request, intake, more, at=at, deployment_region=deployment_region)


@dataclass(frozen=True, slots=True)
class Act:
    """What is about to be done under an earlier decision: one of `ACTS`, and the attempt."""

    name: str
    subject_id: UUID
    earlier: EnforcementDecision


def decision_recompute(
    *, act: Act, caller_status: str, intake: IntakeFacts, at: datetime, deployment_region: str
) -> Computed:
    """Evaluates the request of an earlier decision again, before the act, with what is in force now."""
    known = act.earlier.environment
    # The caller showed its scopes with its key when it asked, and no key comes with the act: they are those of the
    # earlier decision. Its state is that of now.
    more = {
        "caller": known["caller"] | {"status": caller_status},
        "throttle": {"status": TAKEN},
        "concurrency": {"status": TAKEN},
        "act": act.name,
    }
    # Which of two requests was the first one is settled when they come in.
    more |= {name: known[name] for name in ("effect",) if name in known}
    computed = _compute(act.earlier.request, intake, more, at=at, deployment_region=deployment_region)
    return replace(computed, act=act)


def _compute(
    request: dict[str, Any], intake: IntakeFacts, more: Mapping[str, Any], *, at: datetime, deployment_region: str
) -> Computed:
    organization, contract = intake.organization, _load(intake.contract.snapshot_sha256)
    region, region_sha256 = (
        _region(tuple(organization.regions), intake.contract.snapshot_sha256) if contract else (None, None)
    )
    facts = {
        "format": "holdpoint-environment-v1",
        "at": moment_text(at),
        "contract_state": intake.contract.state,
        "contract_sha256": intake.contract.snapshot_sha256 or None,
        "policy_sha256": intake.policy_sha256 or None,
        "region_sha256": region_sha256,
        "deployment_region": deployment_region,
        "boundary_edition": CURRENT,
        "organization": {
            "id": str(organization.id),
            "status": organization.status,
            "regions": list(organization.regions),
        },
        "shutdowns": [dict(entry) for entry in intake.shutdowns],
        "failures": {},
        **more,
    }
    # Only where there is one: without it the facts are those of every earlier decision.
    if standbys := standby_regions():
        facts["standby_regions"] = standbys
    environment = Environment(facts=facts, contract=contract, policy=_load(intake.policy_sha256), region=region)
    # Processor time of this thread: with the wall clock, a busy machine turned ordinary requests into denials with
    # `enforcement_exception`.
    decision = evaluate(request, environment, stopwatch=time.thread_time)
    # A replay has no stopwatch. It takes timeouts and exceptions from here, or it would reach another decision.
    facts["failures"] = dict(decision.failures)
    return Computed(decision, storable_request(request, decision), facts, intake, region)


def decision_row(*, computed: Computed, at: datetime) -> EnforcementDecision:
    """The unsaved row. The caller inserts it together with the rows it decides about, and names it in their ledger
    entry."""
    decision, contract = computed.decision, computed.intake.contract
    if computed.region is not None:
        _snapshot_ensure(sha256=computed.facts["region_sha256"], kind="region", document=computed.region, at=at)
    document = decision_document(decision)
    # `new_row` skips Model.__init__ and the values are column names: this runs for every request.
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
        act=computed.act.name if computed.act else "",
        subject_id=computed.act.subject_id if computed.act else None,
        **_stored(computed, document["results"], at=at),
    )


def _stored(computed: Computed, results: list[Any], *, at: datetime) -> dict[str, Any]:
    """The columns for request, environment and results: only the difference from a shared frame, or all of it."""
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
    """The result of evaluating a stored decision again. No differences: the record and the rules still agree."""

    differences: tuple[str, ...]
    erased_by: UUID | None = None
    """The erasure order that removed its request, in which case nothing can be evaluated."""

    @property
    def agrees(self) -> bool:
        return not self.differences


def decision_replay(*, row: EnforcementDecision) -> Replay:
    """Evaluates the decision again, only from the stored request, environment and snapshots."""
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
    # The hashes are in the ledger. Without this comparison, request and environment could be replaced together by
    # others that lead to the same decision.
    if canonical_sha256(request) != row.request_sha256:
        differences.append("request_sha256")
    if canonical_sha256(facts) != row.environment_sha256:
        differences.append("environment_sha256")
    return Replay(tuple(differences))


def _misplaced(row: EnforcementDecision, environment: Environment) -> list[str]:
    """Columns that differ from the environment. They repeat parts of it for searching; an altered one would
    otherwise go unnoticed."""
    facts, contract, policy = environment.facts, environment.contract, environment.policy
    organization = facts.get("organization")
    said = {
        "organization": isinstance(organization, dict) and organization.get("id") == str(row.organization_id),
        "contract": contract is None or str(row.contract_id) == contract.get("id"),
        "policy_version": row.policy_version == (policy.get("version") if policy is not None else None),
        "at": moment_text(row.at) == facts.get("at"),
        "act": row.act == facts.get("act", ""),
    }
    return [name for name, agrees in said.items() if not agrees]


def stored_environment(row: EnforcementDecision) -> Environment:
    """The environment of a stored decision. Raises SnapshotBroken if a snapshot that it names is missing or altered."""
    facts = row.environment
    facts = facts if isinstance(facts, dict) else {}  # a replay must report an altered row, not fail on it
    return Environment(
        facts=facts,
        contract=_load(facts.get("contract_sha256")),
        policy=_load(facts.get("policy_sha256")),
        region=_load(facts.get("region_sha256")),
    )


def redecide(*, row: EnforcementDecision, policy: Mapping[str, Any], policy_sha256: str) -> Decision:
    """Evaluates a stored request as if this policy had been the active one (simulation)."""
    facts = row.environment
    # Timeouts and exceptions of the old policy say nothing about this one; those of other evaluators still apply.
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
    """The merged regional profile for an organization under a contract, and its hash. None and None if no profile
    allows it, in which case every attempt is denied."""
    # This cache cannot become stale: profiles ship with the program, and a contract's hash names fixed content.
    stance = snapshot_load(contract_sha256)["documents"]["regional_compliance"]
    try:
        document = tighten(merge(load_profiles().select(regions)), stance=stance).document()
    except RegionError:
        return None, None
    return document, canonical_sha256(document)
