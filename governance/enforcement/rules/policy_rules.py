"""Compiles a policy's snapshot into ordered rules with compiled conditions."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from governance.conditions import ConditionError, EvaluationScope, compile_condition
from governance.enforcement.rules.names import POLICY_FORMAT
from governance.enforcement.rules.schemas import TEXT, VERSION, Schema
from governance.enforcement.rules.shape import validator
from governance.enforcement.rules.snapshots import SnapshotMalformed
from governance.enforcement.rules.verdict import Approval, Verdict

_COUNT: Final[Schema] = {"type": ["integer", "null"], "minimum": 1, "maximum": 10**9}
_CODE: Final[Schema] = {"type": ["string", "null"], "maxLength": 100}
_TIER: Final[Schema] = {"type": "string", "minLength": 1}
_BUCKET: Final[Schema] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["tier", "approvals_required"],
    "properties": {"tier": {**_TIER, "maxLength": 100}, "approvals_required": {**_COUNT, "type": "integer"}},
}
_NOTHING: Final[Schema] = {"type": "null"}
_RULE: Final[Schema] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["id", "when", "verdict"],
    "properties": {
        "id": TEXT,
        "when": {"type": "string"},
        "verdict": {"enum": [verdict.value for verdict in Verdict]},
        "reason_code": _CODE,
        "tier": _CODE,
        "approvals_required": _COUNT,
        "expires_in_seconds": _COUNT,
        "buckets": {"type": ["array", "null"], "minItems": 1, "maxItems": 100, "items": _BUCKET},
        "description": {"type": ["string", "null"]},
    },
    # A rule that holds must say who releases it and until when; otherwise the attempt would wait for ever.
    "if": {"properties": {"verdict": {"const": "needs_approval"}}},
    "then": {
        "required": ["expires_in_seconds"],
        "properties": {"expires_in_seconds": {"type": "integer"}},
        "oneOf": [
            {
                "required": ["tier", "approvals_required"],
                "properties": {"tier": _TIER, "approvals_required": {"type": "integer"}, "buckets": _NOTHING},
            },
            {
                "required": ["buckets"],
                "properties": {"buckets": {"type": "array"}, "tier": _NOTHING, "approvals_required": _NOTHING},
            },
        ],
    },
}
POLICY_SCHEMA: Final[Schema] = {
    "type": "object",
    "required": ["format", "id", "slug", "version", "rules"],
    "properties": {
        "format": {"const": POLICY_FORMAT},
        "id": TEXT,
        "slug": TEXT,
        "version": VERSION,
        "rules": {"type": "array", "maxItems": 1000, "items": _RULE},
    },
}
_VALIDATOR: Final = validator(POLICY_SCHEMA)
_DEFAULT_REASONS: Final = {Verdict.DENY: "policy_denied", Verdict.NEEDS_APPROVAL: "review_required"}


class Test(Protocol):
    def __call__(self, context: Mapping[str, Any], *, scope: EvaluationScope) -> bool: ...


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. `test` returns true or false, or raises ConditionError. If the condition does not compile, it always
    raises, and a request that reaches this rule is denied."""

    id: str
    test: Test
    uses_scope: bool
    verdict: Verdict
    reason_code: str | None
    approval: Approval | None


@dataclass(frozen=True, slots=True)
class PolicyRules:
    slug: str
    version: Any
    definition_id: str
    rules: tuple[Rule, ...]
    uses_scope: bool
    """Whether any rule uses `now` or `sample`. Most policies do not, and making the scope takes longer than a rule."""


def compile_policy(snapshot: dict[str, Any]) -> PolicyRules:
    """Raises SnapshotMalformed. A condition that does not compile is not an error here: earlier rules may decide."""
    if not _VALIDATOR.is_valid(snapshot):
        raise SnapshotMalformed
    rules = tuple(map(_rule, snapshot["rules"]))
    return PolicyRules(
        slug=snapshot["slug"],
        version=snapshot["version"],
        definition_id=f"{snapshot['id']}:{snapshot['version']}",
        rules=rules,
        uses_scope=any(rule.uses_scope for rule in rules),
    )


def _rule(rule: Mapping[str, Any]) -> Rule:
    verdict = Verdict(rule["verdict"])
    default = _DEFAULT_REASONS.get(verdict)
    test, uses_scope = _test(rule["when"])
    return Rule(
        id=rule["id"],
        test=test,
        uses_scope=uses_scope,
        verdict=verdict,
        reason_code=None if verdict is Verdict.ALLOW else rule.get("reason_code") or default,
        approval=_approval(rule) if verdict is Verdict.NEEDS_APPROVAL else None,
    )


def _test(source: str) -> tuple[Test, bool]:
    try:
        condition = compile_condition(source)
    except ConditionError as error:
        return _always_raising(error), False
    return condition.evaluate, condition.uses_sample or condition.uses_now


def _always_raising(error: ConditionError) -> Test:
    def test(context: Mapping[str, Any], *, scope: EvaluationScope) -> bool:
        # The same exception object is raised for every request; each raise would make its traceback longer.
        raise error.with_traceback(None)

    return test


def _approval(rule: Mapping[str, Any]) -> Approval:
    return Approval.of(
        tier=rule.get("tier"),
        approvals_required=rule.get("approvals_required"),
        expires_in_seconds=rule["expires_in_seconds"],
        buckets=rule.get("buckets") or (),
    )
