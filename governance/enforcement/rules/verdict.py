"""The results of enforcement: verdicts, one result per evaluator, and the decision made of them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from governance.enforcement.rules.fields import field_errors
from governance.enforcement.rules.wording import explain
from reasoncodes.base.errors import FieldError


class Verdict(StrEnum):
    ALLOW = "allow"
    NEEDS_APPROVAL = "needs_approval"
    DENY = "deny"


@dataclass(frozen=True, slots=True)
class EvaluatorResult:
    """The result of one evaluator. `inputs` has names, codes and counts, never a value that was submitted."""

    evaluator: str
    verdict: Verdict
    reason_code: str | None
    inputs: dict[str, Any] = field(default_factory=dict)

    @property
    def explanation(self) -> str:
        """The result in words, for people."""
        return explain(reason_code=self.reason_code, inputs=self.inputs)

    @property
    def refused_fields(self) -> list[FieldError]:
        """The fields that it denied, with rule and remedy: for the caller."""
        return list(field_errors(self.inputs)) if self.verdict is Verdict.DENY else []


@dataclass(frozen=True, slots=True)
class ApprovalBucket:
    """A number of different people of one tier."""

    tier: str
    approvals_required: int


@dataclass(frozen=True, slots=True)
class Approval:
    """Who must release a held action, how many of them, and until when. With `buckets`, all of them must be filled by
    different people; `tier` is then the first one's and `approvals_required` their sum."""

    tier: str
    approvals_required: int
    expires_in_seconds: int
    buckets: tuple[ApprovalBucket, ...] = ()

    @classmethod
    def of(
        cls,
        *,
        expires_in_seconds: int,
        tier: str | None = None,
        approvals_required: int | None = None,
        buckets: Iterable[Mapping[str, Any]] = (),
    ) -> "Approval":
        """Built from a rule, an evaluator's inputs or a stored decision: either buckets, or a tier and a number."""
        parts = tuple(ApprovalBucket(part["tier"], part["approvals_required"]) for part in buckets)
        if parts:
            return cls(parts[0].tier, sum(part.approvals_required for part in parts), expires_in_seconds, parts)
        if tier is None or approvals_required is None:
            raise ValueError("an approval by nobody")
        return cls(tier, approvals_required, expires_in_seconds)


@dataclass(frozen=True, slots=True)
class Decision:
    """The whole decision. `failures` must be stored with the facts, so that a replay does not run those evaluators."""

    verdict: Verdict
    reason_code: str | None
    results: tuple[EvaluatorResult, ...]
    approval: Approval | None = None
    rule_id: str | None = None
    retry_after: int | None = None
    failures: Mapping[str, str] = field(default_factory=dict)


def allow(evaluator: str, **inputs: Any) -> EvaluatorResult:
    return EvaluatorResult(evaluator, Verdict.ALLOW, None, inputs)


def deny(evaluator: str, reason_code: str, **inputs: Any) -> EvaluatorResult:
    return EvaluatorResult(evaluator, Verdict.DENY, reason_code, inputs)
