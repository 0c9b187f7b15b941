"""The values that come out of enforcement: verdicts, one result per evaluator, and the decision made of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from governance.enforcement.wording import explain


class Verdict(StrEnum):
    ALLOW = "allow"
    NEEDS_APPROVAL = "needs_approval"
    DENY = "deny"


@dataclass(frozen=True, slots=True)
class EvaluatorResult:
    """What one evaluator said. `inputs` holds names, codes and counts, never a value that was submitted."""

    evaluator: str
    verdict: Verdict
    reason_code: str | None
    inputs: dict[str, Any] = field(default_factory=dict)

    @property
    def explanation(self) -> str:
        """The result in words, for people."""
        return explain(reason_code=self.reason_code, inputs=self.inputs)


@dataclass(frozen=True, slots=True)
class Approval:
    """Who must release a held action, how many of them, and until when."""

    tier: str
    approvals_required: int
    expires_in_seconds: int


@dataclass(frozen=True, slots=True)
class Decision:
    """The whole answer. `failures` belongs into the stored facts, so that a replay does not run those evaluators."""

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
