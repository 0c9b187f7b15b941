"""The record of a body that is no request: one decision and one ledger entry. The key stays free."""

from typing import TYPE_CHECKING

from governance.enforcement.models import EnforcementDecision, snapshot_load
from governance.enforcement.rules.names import REQUEST_FORMAT
from governance.enforcement.services import decision_compute, decision_row
from governance.ledger.services import ledger_entry_build
from governance.sql.insert import insert_together
from governance.violations.services import misuse_strike
from reasoncodes.base.errors import DomainError
from reasoncodes.base.tenancy import tenant_scope

if TYPE_CHECKING:
    from attempts.intake.services.door import Intake


def _decision_unreadable(intake: "Intake", refusal: DomainError) -> EnforcementDecision:
    """The decision about a body that has not the shape of a request: a denial that names the broken rules."""
    # Rules only. A pointer into the body may repeat what the caller wrote.
    rules = sorted({error.rule or "shape" for error in refusal.errors} or {"not_json"})
    computed = decision_compute(
        credential=intake.credential,
        intake=intake.facts,
        request={"format": REQUEST_FORMAT, "malformed": [{"pointer": "", "rule": rule} for rule in rules]},
        at=intake.at,
        deployment_region=intake.deployment_region,
        throttle={"status": None},
        concurrency={"status": None},
    )
    return decision_row(computed=computed, at=intake.at)


def attempt_refuse_unreadable(*, intake: "Intake", refusal: DomainError) -> None:
    """Records the refusal of a body. The key stays free. The caller raises the refusal."""
    contract, actor = intake.facts.contract, intake.credential.actor
    with tenant_scope(actor.organization_ids):
        decision = _decision_unreadable(intake, refusal)
        refusal.extensions["decision_id"] = str(decision.id)
        entry = ledger_entry_build(
            action="attempt.refused",
            organization_id=contract.organization_id,
            subject_type="contract",
            subject_id=contract.id,
            actor=actor,
            at=intake.at,
            payload={
                "problems": len(refusal.errors),
                "decision": str(decision.id),
                "request_sha256": decision.request_sha256,
                "environment_sha256": decision.environment_sha256,
            },
            reason_code="invalid_input",
        )
        insert_together([decision], [entry])
        # After the commit: a strike that fails must not roll back the record of the refusal. A step's body comes from
        # our own engine, so it gets no strike.
        if intake.origin_step is None:
            misuse = snapshot_load(contract.snapshot_sha256)["documents"]["throttles_and_misuse"]["misuse"]
            misuse_strike(actor=actor, at=intake.at, rule=misuse)
