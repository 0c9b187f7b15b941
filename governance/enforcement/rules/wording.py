"""Results as sentences for people. Made only from reason codes and inputs, so no submitted value can appear."""

from collections.abc import Mapping
from typing import Any, Final

from governance.enforcement.rules.fields import field_errors

_PASSED: Final = "Passed."
_OTHER: Final = "A rule of the policy decided this, with reason code {code}."
_REASONS: Final[Mapping[str, str]] = {
    "invalid_input": "The request does not have the expected shape.",
    "enforcement_exception": "This check could not be completed, so the request is denied.",
    "attempt_creation_disabled": "The contract is not open for attempts.",
    "contract_suspended": "The contract is suspended.",
    "contract_retired": "This version of the contract is retired.",
    "shutdown_engaged": "A shutdown covers this request.",
    "envelope_incomplete": "The identity of the attempt is incomplete or does not match the contract.",
    "runtime_mode_not_allowed": "The contract does not allow this runtime mode.",
    "effect_mismatch": "The action does not match what the contract declares.",
    "metadata_boundary": "The request contains something that must not enter the record.",
    "region_unset": "The organization has no region of record, or one of its regions has no profile.",
    "residency_violation": "The regional rules or the regions of the contract do not allow this.",
    "not_authorized": "The caller is not allowed to create attempts under this contract.",
    "misuse_suspended": "The caller is suspended.",
    "rate_limited": "The throttles do not allow this many requests.",
    "throttle_unavailable": "The throttle counters could not be read, so the request is denied.",
    "concurrency_limit": "Too many attempts run at the same time, or the count could not be read.",
    "no_active_policy": "The contract has no active policy, so nothing is allowed.",
    "no_rule_matched": "No rule of the policy matched, so the request is denied.",
    "policy_denied": "A rule of the policy denies this action.",
    "review_required": "A person has to decide first.",
    "effect_repeated": "The same effect was asked for before, under another key.",
}
# Input name → sentence. Inputs that are not listed are only for programs.
_DETAILS: Final[Mapping[str, str]] = {
    "state": "State of the contract: {}.",
    "covering": "Shutdowns: {}.",
    "drills": "Only a drill: {}.",
    "problems": "Found: {}.",
    "regions": "Regions of record: {}.",
    "outside_contract": "Not listed by the contract: {}.",
    "without_profile": "Without a profile: {}.",
    "deployment_region": "Region of this deployment: {}.",
    "standby_refused": "Regions where no standby may run: {}.",
    "lacking": "Not fulfilled: {}.",
    "exceeded": "Limit reached: {}.",
    "busy": "Busy: {}.",
    "cap": "Limit: {}.",
    "queued": "It waits for a free slot: {}.",
    "retry_after": "Try again after {} seconds.",
    "rule": "Rule: {}.",
    "asked_before": "Asked for before: {} time(s).",
    "condition_error": "Its condition failed with {}.",
    "tier": "Reviewers: {}.",
    "buckets": "Reviewers, all different people: {}.",
    "approvals_required": "Approvals needed: {}.",
    "not_evaluated": "Not checked, because of: {}.",
    "failure": "What happened: {}.",
    "error": "Kind of error: {}.",
}


def explain(*, reason_code: str | None, inputs: Mapping[str, Any]) -> str:
    """One or more plain sentences; empty inputs are left out."""
    first = _PASSED if reason_code is None else _REASONS.get(reason_code, _OTHER.format(code=reason_code))
    said = [one.message for one in field_errors(inputs)] if reason_code else []
    said += [
        wording.format(_in_words(inputs[name])) for name, wording in _DETAILS.items() if _worth_saying(inputs, name)
    ]
    return " ".join([first, *said])


def _worth_saying(inputs: Mapping[str, Any], name: str) -> bool:
    value = inputs.get(name)
    return value is not None and value is not False and value != []


def _in_words(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_in_words, value))
    if isinstance(value, Mapping) and "tier" in value:
        return f"{value['approvals_required']} of {value['tier']}"
    if isinstance(value, Mapping) and "used" in value:
        window = f" in {value['window_seconds']} seconds" if "window_seconds" in value else ""
        return f"{value['name']}, {value['used']} of {value['limit']} used{window}"
    if isinstance(value, Mapping):
        return f"{value.get('pointer') or '/'} ({value.get('rule')})"
    return "yes" if value is True else str(value)
