"""What do the policy's rules say? The first rule that matches decides. If none matches, the request is denied."""

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from governance.boundary.rules import facts_typed
from governance.conditions import ConditionError, EvaluationScope
from governance.enforcement.rules.case import Case
from governance.enforcement.rules.contract_terms import ContractTerms
from governance.enforcement.rules.policy_rules import PolicyRules, Rule
from governance.enforcement.rules.shape import parse_moment
from governance.enforcement.rules.storage import buckets_document
from governance.enforcement.rules.verdict import Approval, EvaluatorResult, Verdict, deny

NAME: Final = "policy"
_NOBODY: Final = "-"
_LONGEST_IDENTIFIER: Final = 200
_DAY: Final = 86_400
_UNUSED_SCOPE: Final = EvaluationScope(now=datetime.fromtimestamp(0, UTC), case_id=_NOBODY, definition_id=_NOBODY)


def evaluate(case: Case) -> EvaluatorResult:
    policy, contract = case.policy, case.contract
    if policy is None:
        return deny(NAME, "no_active_policy")
    if contract is None:
        return deny(NAME, "attempt_creation_disabled", not_evaluated="contract")
    inputs = {"policy": policy.slug, "version": policy.version}
    if contract.policy_slug not in (None, policy.slug):
        return deny(NAME, "no_active_policy", **inputs, mismatched=["policy"])
    if not case.inspection.clean:
        # A rule must not read a value that is not stored: a replay would decide differently.
        reason = "enforcement_exception" if case.inspection.failed else "metadata_boundary"
        return deny(NAME, reason, **inputs, not_evaluated="metadata_boundary")
    scope = _scope(case, policy) if policy.uses_scope else _UNUSED_SCOPE
    result = _first_match(policy, context=_context(case, contract), scope=scope, inputs=inputs)
    return _repeated(result, contract, asked_before=_asked_before(case))


def _asked_before(case: Case) -> int:
    found: int = case.facts.get("effect", {}).get("asked_before", 0)
    return found


def _repeated(result: EvaluatorResult, contract: ContractTerms, *, asked_before: int) -> EvaluatorResult:
    """What the contract says about the same effect under another key. It only tightens what the rules say."""
    if not asked_before or result.verdict is Verdict.DENY:
        return result
    inputs = result.inputs | {"asked_before": asked_before}
    if contract.on_repeat == "refuse":
        return deny(NAME, "effect_repeated", **inputs)
    if contract.on_repeat != "hold" or contract.repeat_tier is None:
        return EvaluatorResult(NAME, result.verdict, result.reason_code, inputs)
    if result.verdict is Verdict.ALLOW:
        once = {"tier": contract.repeat_tier, "approvals_required": 1, "expires_in_seconds": _DAY}
        return EvaluatorResult(NAME, Verdict.NEEDS_APPROVAL, "effect_repeated", inputs | once)
    return EvaluatorResult(NAME, result.verdict, result.reason_code, _with_tier(inputs, contract.repeat_tier))


def _with_tier(inputs: dict[str, Any], tier: str) -> dict[str, Any]:
    """The demand of the rule, and somebody of this tier among those who sign."""
    single = {"tier": inputs.get("tier"), "approvals_required": inputs["approvals_required"]}
    buckets = inputs.get("buckets") or [single]
    if any(bucket["tier"] == tier for bucket in buckets):
        return inputs
    asked = {name: value for name, value in inputs.items() if name != "tier"}
    more = [*buckets, {"tier": tier, "approvals_required": 1}]
    return asked | {"buckets": more, "approvals_required": inputs["approvals_required"] + 1}


def _first_match(
    policy: PolicyRules, *, context: Mapping[str, Any], scope: EvaluationScope, inputs: dict[str, Any]
) -> EvaluatorResult:
    number, rule = 0, None
    try:
        for number, rule in enumerate(policy.rules, start=1):
            if rule.test(context, scope=scope):
                return _matched(rule, inputs={**inputs, "rule": rule.id, "rules_evaluated": number})
    except ConditionError as error:
        # A denial, not the next rule: a rule that denies and cannot be evaluated must not be skipped.
        named = {"rule": rule.id if rule else None, "rules_evaluated": number, "condition_error": error.code}
        return deny(NAME, "enforcement_exception", **inputs, **named)
    return deny(NAME, "no_rule_matched", **inputs, rules_evaluated=number)


def _matched(rule: Rule, *, inputs: dict[str, Any]) -> EvaluatorResult:
    approval = rule.approval
    if rule.verdict is Verdict.NEEDS_APPROVAL and approval is not None:
        inputs |= _who(approval) | {
            "approvals_required": approval.approvals_required,
            "expires_in_seconds": approval.expires_in_seconds,
        }
    return EvaluatorResult(NAME, rule.verdict, rule.reason_code, inputs)


def _who(approval: Approval) -> dict[str, Any]:
    if not approval.buckets:
        return {"tier": approval.tier}
    return {"buckets": buckets_document(approval.buckets)}


def _context(case: Case, contract: ContractTerms) -> dict[str, Any]:
    """Everything that a rule can read. The names are part of the policy language; see docs/enforcement.md."""
    request, caller, organization = case.request, case.facts["caller"], case.facts["organization"]
    return {
        "action": request["action"],
        "metadata": case.metadata,
        "facts": facts_typed(contract.boundary.facts, case.metadata),
        "envelope": request["envelope"],
        "caller": {"id": caller["id"], "scopes": caller["scopes"]},
        "organization": {"id": organization["id"], "regions": organization["regions"]},
        "contract": contract.context,
        "effect": {"asked_before": _asked_before(case)},
    }


def _scope(case: Case, policy: PolicyRules) -> EvaluationScope:
    """The moment and the identity of this evaluation, for `now` and `sample`."""
    # `sample` depends on the patient context, or else on the target. Neither changes when a caller tries again, so
    # nobody gets past a sampled review by repeating the request.
    about = case.request["envelope"].get("patient_context_ref") or case.request["action"].get("target_ref")
    now = parse_moment(case.facts["at"])
    if now is None:
        raise ValueError("facts without a moment")
    return EvaluationScope(
        now=now, case_id=_identifier(about or _NOBODY), definition_id=_identifier(policy.definition_id)
    )


def _identifier(text: str) -> str:
    """The text itself if `sample` accepts it, otherwise its SHA-256."""
    usable = len(text) <= _LONGEST_IDENTIFIER and text.isprintable()
    return text if usable else hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
