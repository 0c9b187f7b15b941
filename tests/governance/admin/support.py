"""Set-up for the console's tests: everybody who might knock, and recorded decisions to look at."""

from datetime import datetime
from typing import Any

from django.db import transaction
from django.test import Client
from django.utils import timezone

from governance.contracts.models import Contract
from governance.enforcement.models import EnforcementDecision
from governance.enforcement.selectors import intake_facts
from governance.enforcement.services import Computed, decision_compute, decision_row
from governance.ledger.services import ledger_entry_build
from governance.people.models import User
from governance.people.selectors.people import credential_for_secret
from governance.sql.insert import insert_together
from reasoncodes.base.actors import Actor
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast

ACTION_OF = {"allow": "decision.allowed", "needs_approval": "decision.held", "deny": "decision.denied"}
OK_THROTTLE = {"status": "ok", "exceeded": None, "retry_after": 0}
OK_CONCURRENCY = {"status": "ok", "busy": None, "when_busy": "deny", "retry_after": 0}


def everybody(cast: Cast) -> dict[str, User]:
    """The people of the permission tests by what they are. `owner` owns privacy, nothing else."""
    return {
        "operator": cast.operator,
        "stranger": cast.other_operator,
        "auditor": cast.auditor,
        "owner": cast.person("priya", "owner:privacy"),
        "reviewer": cast.reviewer,
        "nobody": cast.nobody,
        "administrator": cast.administrator,
    }


def browser(cast: Cast, who: str) -> Client:
    return Client(raise_request_exception=False) if who == "anonymous" else cast.console(everybody(cast)[who])


def page(model: str, *rest: Any) -> str:
    return "/".join(["/admin/governance", model, *map(str, rest), ""])


def decision_record(*, computed: Computed, actor: Actor, at: datetime) -> EnforcementDecision:
    """In the caller's transaction: a decision about something that is no attempt, and its ledger entry."""
    row, contract = decision_row(computed=computed, at=at), computed.intake.contract
    entry = ledger_entry_build(
        action=ACTION_OF[row.verdict],
        organization_id=row.organization_id,
        subject_type="decision",
        subject_id=row.id,
        actor=actor,
        at=at,
        payload={
            "contract": f"{contract.slug}/{contract.version}",
            "rule": row.rule_id,
            "request_sha256": row.request_sha256,
            "environment_sha256": row.environment_sha256,
        },
        reason_code=row.reason_code,
    )
    insert_together([row], [entry])
    return row


def make_decisions(cast: Cast, contract: Contract, *, count: int = 1, risk_tier: str = "low") -> list[Any]:
    """Decided and recorded through the services, like an attempt's."""
    key = cast.key("attempts:create")
    with every_tenant():
        credential = credential_for_secret(secret=key, at=timezone.now())
        intake = intake_facts(organization=cast.organization, slug=contract.slug, version=str(contract.version))
        assert credential is not None
        assert intake is not None
        made = []
        for index in range(count):
            at = timezone.now()
            computed = decision_compute(
                credential=credential,
                intake=intake,
                request=request_document(contract, index, risk_tier),
                at=at,
                deployment_region="US",
                throttle=OK_THROTTLE,
                concurrency=OK_CONCURRENCY,
            )
            with transaction.atomic():
                made.append(decision_record(computed=computed, actor=credential.actor, at=at))
    return made


def request_document(contract: Contract, index: int, risk_tier: str) -> dict[str, Any]:
    return {
        "format": "holdpoint-request-v1",
        "envelope": {
            "workflow_slug": contract.slug,
            "contract_version": str(contract.version),
            "request_trace_id": f"trace-{index}",
            "idempotency_key": f"key-{index:08d}-abcdefgh",
            "tenant_ref": f"org:{contract.organization_id}",
            "caller_ref": "service:caller",
            "patient_context_ref": "ctx-42",
            "review_owner": contract.review_owner,
            "runtime_mode": "client_driven",
            "audit_event_link": "ledger:entry-42",
        },
        "action": {
            "connector": contract.adapter,
            "operation": "case.close",
            "target_ref": f"case-{index}",
            "risk_tier": risk_tier,
            "payload_ref": "store-42",
            "payload_sha256": "ab" * 32,
            "fields": ["status"],
        },
        "metadata": {},
    }
