"""Resolves quarantine cases: a person says what happened, and accepts, links an incident, authorizes a retry or
compensates. The scheduled escalation of cases is here too."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from attempts.intake.services.door import Intake
from attempts.intake.services.follow_up import ReplayOrder, body_of, intake_for_caller
from attempts.intake.services.intake import attempt_create
from attempts.intake.services.rows import IntakeAnswer
from attempts.lifecycle.models import Attempt
from attempts.lifecycle.selectors.attempts import attempt_lock
from attempts.notify.services.cases import case_notice_write
from attempts.notify.states import CaseNoticeKind
from attempts.quarantine.errors import FindingNeeded, IncidentNeeded, NotYourCase
from attempts.quarantine.models import QuarantineCase
from attempts.quarantine.selectors import is_own, may_act
from attempts.quarantine.states import InvestigatedOutcome, Resolution
from governance.enforcement.models import snapshot_load
from governance.ledger.services import actor_reference, ledger_append
from governance.people.rules.roles import ApiScope
from governance.tenancy.selectors import tenant_get
from governance.violations.errors import OwnWork
from governance.violations.services import violations_recorded
from reasoncodes.base.actors import CLOCK, Actor, ActorKind
from reasoncodes.base.errors import NotFound, ScopeMissing, WrongState
from reasoncodes.base.tenancy import every_tenant
from reasoncodes.base.trace import TraceContext


@dataclass(frozen=True, slots=True)
class ResolutionOrder:
    """What a person submits with a resolution (`finding` is the investigated outcome), and facts of the request."""

    finding: str = ""
    evidence_ref: str = ""
    trace: TraceContext | None = None
    deployment_region: str = ""
    base_url: str = ""


@violations_recorded
def quarantine_accept(*, actor: Actor, at: datetime, case_id: UUID, order: ResolutionOrder) -> QuarantineCase:
    """Closes the case without a new attempt."""
    with transaction.atomic():
        attempt, case = _lock(actor, case_id)
        _find(case, order, actor=actor, at=at, needed=None)
        _require_incident(attempt, case)
        _resolve(case, Resolution.ACCEPTED, "quarantine.accepted", actor=actor, at=at)
    return case


@violations_recorded
def quarantine_hand_over(*, actor: Actor, at: datetime, case_id: UUID) -> QuarantineCase:
    """Closes the case because its incident decides what follows, outside of Holdpoint. Without a finding too: finding
    out what happened is then part of the incident."""
    with transaction.atomic():
        _, case = _lock(actor, case_id)
        if not case.incident_ref:
            raise IncidentNeeded
        incident = {"incident_ref": case.incident_ref}
        _resolve(case, Resolution.INCIDENT, "quarantine.handed_over", actor=actor, at=at, **incident)
    return case


@violations_recorded
def quarantine_link_incident(*, actor: Actor, at: datetime, case_id: UUID, incident_ref: str) -> QuarantineCase:
    """Links an incident. The case stays open, because an incident does not say what follows. So an incident system may
    link one too, with the scope for interventions: it decides nothing."""
    with transaction.atomic():
        case = _lock_for_incident(actor, case_id)
        case.incident_ref = incident_ref
        case.save(update_fields=["incident_ref"])
        _record(case, "quarantine.incident_linked", actor=actor, at=at, incident_ref=incident_ref)
    return case


@violations_recorded
def quarantine_authorize_retry(*, actor: Actor, at: datetime, case_id: UUID, order: ResolutionOrder) -> IntakeAnswer:
    """Starts a new attempt of the same action. Only if a person found out that it did not happen."""
    # One transaction with the case: otherwise a crash between the two could leave the retry admitted and the case open.
    with transaction.atomic():
        attempt, case = _lock(actor, case_id)
        _require_another(actor, attempt, case)
        _find(case, order, actor=actor, at=at, needed=InvestigatedOutcome.DID_NOT_HAPPEN)
        _require_incident(attempt, case)
        slug, version = attempt.workflow_slug, attempt.contract_version
        intake = _intake(attempt, order, slug, str(version), key=f"retry-{case.id}", at=at)
        by = actor_reference(actor)
        answer = attempt_create(intake=replace(intake, body=body_of(attempt), retry_of=attempt.id, authorized_by=by))
        _follow(case, answer, Resolution.RETRY_AUTHORIZED, "quarantine.retry_authorized", actor=actor, at=at)
    return answer


@violations_recorded
def quarantine_compensate(*, actor: Actor, at: datetime, case_id: UUID, order: ResolutionOrder) -> IntakeAnswer:
    """Starts a new attempt under the compensation contract. Only if a person found out that the action happened."""
    with transaction.atomic():
        attempt, case = _lock(actor, case_id)
        _require_another(actor, attempt, case)
        _find(case, order, actor=actor, at=at, needed=InvestigatedOutcome.HAPPENED)
        _require_incident(attempt, case)
        named = _rules(attempt)["compensation_contract"]
        if not named:
            raise WrongState("The contract names no compensation contract.")
        slug, _, version = named.partition("/")
        body = body_of(attempt)
        body["action"] = {k: v for k, v in body["action"].items() if k != "connector"} | {
            "operation": f"compensate.{attempt.operation}"[:128]
        }
        intake = _intake(attempt, order, slug, version, key=f"compensate-{case.id}", at=at)
        by = actor_reference(actor)
        answer = attempt_create(intake=replace(intake, body=body, compensates=attempt.id, authorized_by=by))
        _follow(case, answer, Resolution.COMPENSATED, "quarantine.compensated", actor=actor, at=at)
    return answer


def _lock(actor: Actor, case_id: UUID) -> tuple[Attempt, QuarantineCase]:
    """Locks attempt and case. Only people who answer for the case resolve it, and only once."""
    # Attempt before case, the order of every service that locks both: otherwise two could deadlock.
    attempt_id = tenant_get(QuarantineCase, case_id).attempt_id
    attempt = attempt_lock(attempt_id=attempt_id)
    case = QuarantineCase.objects.select_for_update(no_key=True).get(id=case_id)
    if actor.kind is not ActorKind.PERSON or actor.id is None or not actor.may_act_in(case.organization_id):
        raise NotFound
    # Under the lock, so that a role that was just taken away no longer counts.
    if not may_act(user_id=actor.id, case=case):
        raise NotYourCase(subject_type="quarantine_case", subject_id=case.id, organization_id=case.organization_id)
    if case.resolution:
        raise WrongState("This case is resolved already.")
    return attempt, case


def _lock_for_incident(actor: Actor, case_id: UUID) -> QuarantineCase:
    if actor.kind is not ActorKind.SERVICE:
        return _lock(actor, case_id)[1]
    case = tenant_get(QuarantineCase, case_id, lock=True)
    if not actor.may_act_in(case.organization_id):
        raise NotFound
    if ApiScope.ORCHESTRATOR_INTERVENE not in actor.scopes:
        raise ScopeMissing(extensions={"required_scope": ApiScope.ORCHESTRATOR_INTERVENE})
    if case.resolution:
        raise WrongState("This case is resolved already.")
    return case


def _find(
    case: QuarantineCase, order: ResolutionOrder, *, actor: Actor, at: datetime, needed: InvestigatedOutcome | None
) -> None:
    if order.finding and order.finding != case.finding:
        case.finding, case.evidence_ref = order.finding, order.evidence_ref
        case.found_by_ref = actor_reference(actor)
        case.save(update_fields=["finding", "evidence_ref", "found_by_ref"])
        _record(case, "quarantine.found", actor=actor, at=at, finding=case.finding, evidence_ref=case.evidence_ref)
    if (needed is not None and case.finding != needed) or (needed is None and not case.finding):
        raise FindingNeeded(f"This needs the finding {needed or 'happened or did_not_happen'}.")


def _rules(attempt: Attempt) -> Mapping[str, Any]:
    rules: Mapping[str, Any] = snapshot_load(attempt.contract.snapshot_sha256)["documents"]["failure_quarantine"]
    return rules


def _require_incident(attempt: Attempt, case: QuarantineCase) -> None:
    if _rules(attempt)["incident_required"] and not case.incident_ref:
        raise IncidentNeeded


def _require_another(actor: Actor, attempt: Attempt, case: QuarantineCase) -> None:
    """What a service does counts as its responsible person's, so that person does not authorize what it does next."""
    if is_own(attempt=attempt, person_id=actor.id):
        raise OwnWork(
            "You are responsible for the service that asked. Somebody else authorizes a retry or a compensation.",
            subject_type="quarantine_case",
            subject_id=case.id,
            organization_id=case.organization_id,
        )


def _intake(attempt: Attempt, order: ResolutionOrder, slug: str, version: str, *, key: str, at: datetime) -> Intake:
    asked = ReplayOrder(key, order.trace, order.deployment_region, order.base_url)
    return intake_for_caller(attempt, asked, slug=slug, version=version, at=at)


def _follow(
    case: QuarantineCase, answer: IntakeAnswer, resolution: Resolution, action: str, *, actor: Actor, at: datetime
) -> None:
    """Resolves the case if the new attempt was not refused. A denied attempt stays recorded and the case stays open."""
    if answer.attempt_id is None or answer.status >= 400:
        return
    case.follow_up_id = answer.attempt_id
    case.save(update_fields=["follow_up"])
    _resolve(case, resolution, action, actor=actor, at=at, follow_up=str(answer.attempt_id))


def _resolve(
    case: QuarantineCase, resolution: Resolution, action: str, *, actor: Actor, at: datetime, **facts: Any
) -> None:
    case.resolution = resolution
    case.resolved_by_ref = actor_reference(actor)
    case.resolved_at = at
    case.save(update_fields=["resolution", "resolved_by_ref", "resolved_at"])
    _record(case, action, actor=actor, at=at, **facts)


def _record(case: QuarantineCase, action: str, *, actor: Actor, at: datetime, **facts: Any) -> None:
    ledger_append(
        action=action,
        organization_id=case.organization_id,
        subject_type="quarantine_case",
        subject_id=case.id,
        actor=actor,
        at=at,
        payload={"attempt": str(case.attempt_id), "category": case.category, **facts},
        reason_code=case.reason_code,
    )


BATCH = 200  # bounds one transaction; the next run of the scheduled task goes on


def quarantine_escalate_due(*, at: datetime) -> int:
    """Marks open cases as escalated if their time is over, and returns how many."""
    # SKIP LOCKED: a second run at the same time, or a person who resolves a case, must not make this one wait.
    with every_tenant(), transaction.atomic():
        due = list(
            QuarantineCase.objects.select_for_update(skip_locked=True, no_key=True)
            .filter(resolution="", escalated_at=None, escalate_at__lte=at)
            .order_by("escalate_at")[:BATCH]
        )
        for case in due:
            case.escalated_at = at
            case.save(update_fields=["escalated_at"])
            case_notice_write(case, kind=CaseNoticeKind.ESCALATED, at=at)
            ledger_append(
                action="quarantine.escalated",
                organization_id=case.organization_id,
                subject_type="quarantine_case",
                subject_id=case.id,
                actor=CLOCK,
                at=case.escalate_at,
                payload={"attempt": str(case.attempt_id), "owner": case.escalation_owner},
                reason_code=case.reason_code,
            )
    return len(due)
