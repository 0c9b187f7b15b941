"""What a held attempt asks for and why it is held, in words, for every card."""

from typing import Any

from attempts.lifecycle.models import Attempt
from attempts.lifecycle.rules import reversibility
from attempts.lifecycle.selectors.attempts import compensation_of
from attempts.reviews.rules import AskedAction
from governance.boundary.rules import facts_shown
from governance.enforcement.models import EnforcementDecision, snapshot_load
from governance.enforcement.rules import results_from_document


def asked_action(*, attempt: Attempt, decision: EnforcementDecision) -> AskedAction:
    """Reads the attempt's contract; the caller selects it with the attempt where there are many."""
    declared = decision.facts_declared
    names = {fact.name for fact in declared}
    return AskedAction(
        connector=attempt.connector,
        operation=attempt.operation,
        target_ref=attempt.target_ref,
        fields=tuple(attempt.fields),
        effect=attempt.effect,
        risk_tier=attempt.risk_tier,
        payload_ref=attempt.payload_ref,
        payload_sha256=attempt.payload_sha256,
        reversibility=reversibility(effect=attempt.effect, compensation=compensation_of(attempt)),
        facts=tuple(facts_shown(declared, attempt.metadata)),
        metadata={name: value for name, value in attempt.metadata.items() if name not in names},
        why=" ".join(filter(None, [rule_description(decision), policy_explanation(decision)])),
        rule_id=decision.rule_id,
        policy_version=decision.policy_version,
    )


def policy_explanation(decision: EnforcementDecision) -> str:
    """What the policy evaluator says, in words."""
    words = [row.explanation for row in results_from_document(decision.results) if row.evaluator == "policy"]
    return words[0] if words else ""


def rule_description(decision: EnforcementDecision) -> str:
    """What the author of the rule that held it wrote about it, in the version that decided."""
    sha256 = decision.environment.get("policy_sha256")
    rules: list[dict[str, Any]] = snapshot_load(sha256)["rules"] if sha256 else []
    return next((row.get("description") or "" for row in rules if row["id"] == decision.rule_id), "")
