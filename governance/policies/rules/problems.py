"""Validates the rules of a policy. Every problem has a pointer; for conditions it shows line, column and a caret."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import jsonschema_rs

from governance.conditions import ConditionError, compile_condition

# Rules are evaluated one after the other for every request: the limit bounds the time of the policy evaluator.
MAX_RULES = 200
# What a rule can read, as `_context` of the policy evaluator fills it. None: the names depend on the contract. A path
# that is not here would be missing in every request, and its rule would deny all of them.
CONTEXT: dict[str, frozenset[str] | None] = {
    "action": frozenset(
        {"connector", "operation", "target_ref", "risk_tier", "payload_ref", "payload_sha256", "fields"}
    ),
    "metadata": None,
    "facts": None,
    "envelope": None,
    "caller": frozenset({"id", "scopes"}),
    "organization": frozenset({"id", "regions"}),
    "contract": frozenset({"slug", "version", "effect", "risk_tier", "adapter"}),
    "effect": frozenset({"asked_before"}),
}

APPROVAL_FIELDS = ("tier", "approvals_required", "expires_in_seconds", "buckets")
BUCKET_SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["tier"],
    "properties": {
        "tier": {"type": "string", "maxLength": 63},
        "approvals_required": {"type": "integer", "minimum": 1, "maximum": 10},
    },
}
RULE_SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["id", "when", "verdict"],
    "properties": {
        "id": {"type": "string", "pattern": "^[a-z0-9][a-z0-9_-]{0,62}$"},
        "when": {"type": "string", "maxLength": 2000},
        "verdict": {"enum": ["deny", "needs_approval", "allow"]},
        "reason_code": {"type": "string", "pattern": "^[a-z][a-z0-9_]{1,63}$"},
        "description": {"type": "string", "maxLength": 280},
        "tier": {"type": "string", "maxLength": 63},
        "approvals_required": {"type": "integer", "minimum": 1, "maximum": 10},
        "expires_in_seconds": {"type": "integer", "minimum": 60, "maximum": 31536000},
        "buckets": {"type": "array", "minItems": 1, "maxItems": 10, "items": BUCKET_SCHEMA},
    },
}
_validator = jsonschema_rs.Draft202012Validator(RULE_SCHEMA)


@dataclass(frozen=True, slots=True)
class PolicyProblem:
    pointer: str
    rule: str
    message: str


def rules_problems(rules: Any, *, reason_codes: Collection[str], tiers: Collection[str]) -> tuple[PolicyProblem, ...]:
    """All problems of the rules. `reason_codes` and `tiers` are those of the organization."""
    if not isinstance(rules, list) or not rules:
        return (PolicyProblem("/rules", "type", "must be a list of at least one rule"),)
    if len(rules) > MAX_RULES:
        return (PolicyProblem("/rules", "limit", f"has more than {MAX_RULES} rules"),)
    found: list[PolicyProblem] = []
    seen: set[str] = set()
    for index, rule in enumerate(rules):
        pointer = f"/rules/{index}"
        shape = _shape(rule, pointer)
        found += shape or _meaning(rule, pointer, reason_codes, tiers)
        if not shape:
            if rule["id"] in seen:
                found.append(PolicyProblem(f"{pointer}/id", "duplicate", "is used by an earlier rule"))
            seen.add(rule["id"])
    return tuple(found)


def _shape(rule: Any, pointer: str) -> list[PolicyProblem]:
    found = []
    for error in _validator.iter_errors(rule):
        path = "".join(f"/{part}" for part in error.instance_path)
        kind = str(error.schema_path[-1]) if error.schema_path else "shape"
        words = SHAPE_WORDS | (BUCKET_WORDS if path.startswith("/buckets") else {})
        found.append(PolicyProblem(pointer + path, kind, words.get(kind, "does not have the expected shape")))
    return found


SHAPE_WORDS = {
    "required": "lacks one of: id, when, verdict",
    "additionalProperties": "has a field that is not one of: " + ", ".join(RULE_SCHEMA["properties"]),
    "enum": "must be deny, needs_approval or allow",
    "pattern": "does not have the expected format",
    "minimum": "is too small",
    "maximum": "is too large",
    "maxLength": "is too long",
    "type": "does not have the expected type",
    "minItems": "is empty",
    "maxItems": "has too many entries",
}
BUCKET_WORDS = {
    "required": "lacks its tier",
    "additionalProperties": "has a field that is not one of: " + ", ".join(BUCKET_SCHEMA["properties"]),
}


def _meaning(
    rule: dict[str, Any], pointer: str, reason_codes: Collection[str], tiers: Collection[str]
) -> list[PolicyProblem]:
    found = [*_condition(rule["when"], f"{pointer}/when")]
    code = rule.get("reason_code")
    if rule["verdict"] == "deny" and code is None:
        found.append(PolicyProblem(f"{pointer}/reason_code", "required", "a rule that denies names its reason code"))
    if code is not None and code not in reason_codes:
        found.append(_unknown(f"{pointer}/reason_code", "reason code", code, reason_codes))
    if rule["verdict"] == "needs_approval":
        found += _approval(rule, pointer, tiers)
    elif any(name in rule for name in APPROVAL_FIELDS):
        found.append(PolicyProblem(pointer, "approval_fields", "only needs_approval takes tier, approvals and expiry"))
    return found


def _approval(rule: dict[str, Any], pointer: str, tiers: Collection[str]) -> list[PolicyProblem]:
    """Who approves: either one tier and a number, or buckets of different tiers."""
    if "buckets" not in rule:
        return _tier(rule.get("tier", ""), f"{pointer}/tier", tiers)
    found = []
    if "tier" in rule or "approvals_required" in rule:
        words = "takes either tier and approvals_required, or buckets"
        found.append(PolicyProblem(pointer, "approval_fields", words))
    seen: set[str] = set()
    for index, bucket in enumerate(rule["buckets"]):
        place = f"{pointer}/buckets/{index}/tier"
        found += _tier(bucket["tier"], place, tiers)
        if bucket["tier"] in seen:
            found.append(PolicyProblem(place, "duplicate", "has a bucket of its own already"))
        seen.add(bucket["tier"])
    return found


def _tier(tier: str, pointer: str, tiers: Collection[str]) -> list[PolicyProblem]:
    return [] if tier in tiers else [_unknown(pointer, "reviewer tier", tier, tiers)]


def _unknown(pointer: str, what: str, given: str, known: Collection[str]) -> PolicyProblem:
    nearest: Sequence[str] = get_close_matches(given, list(known), n=1)
    hint = f"; did you mean {nearest[0]}?" if nearest else f"; known: {', '.join(sorted(known)[:20])}"
    return PolicyProblem(pointer, "unknown", f"is not a {what} of this organization{hint}")


def _condition(source: str, pointer: str) -> list[PolicyProblem]:
    try:
        condition = compile_condition(source)
    except ConditionError as error:
        return [PolicyProblem(pointer, error.code, error.render())]
    found = []
    for path in sorted(condition.paths):
        known = CONTEXT.get(path[0], frozenset()) if path[0] in CONTEXT else frozenset()
        if path[0] not in CONTEXT:
            found.append(_unknown(pointer, "name that a policy can read", path[0], CONTEXT))
        elif known is not None and len(path) > 1 and path[1] not in known:
            found.append(_unknown(pointer, f"part of {path[0]}", path[1], known))
    return found
