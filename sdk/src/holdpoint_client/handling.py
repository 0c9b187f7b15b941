"""What a handler's end means for the record. Only a handler that says so did not act; every other error is unknown."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


class NotDone(Exception):
    """Raise it in a handler or a governed function when it is certain that nothing happened.

    `retryable` asks for another try, which the contract and the effect then allow or not.
    """

    def __init__(
        self,
        words: str = "it was not done",
        *,
        retryable: bool = False,
        category: str = "adapter_failure",
        reason_code: str = "adapter_failed",
    ) -> None:
        self.retryable, self.category, self.reason_code = retryable, category, reason_code
        super().__init__(words)


@dataclass(frozen=True, slots=True)
class Success:
    """What a handler may return instead of a mapping. Codes, numbers, references: never content."""

    response_metadata: Mapping[str, Any] = field(default_factory=dict)
    cost: Mapping[str, Any] | None = None
    reversible: bool = False
    reversal_hint: str = ""

    def as_report(self) -> dict[str, Any]:
        return {
            "response_metadata": self.response_metadata,
            "cost": self.cost,
            "reversible": self.reversible,
            "reversal_hint": self.reversal_hint,
        }


BARE = Success()


@dataclass(frozen=True, slots=True)
class Failure:
    category: str
    retryable: bool
    reason_code: str

    def as_report(self) -> dict[str, Any]:
        return {"category": self.category, "retryable": self.retryable, "reason_code": self.reason_code}


UNKNOWN = Failure("outcome_unknown", retryable=False, reason_code="outcome_unknown")
Returned = Success | Mapping[str, Any] | None


def success_of(returned: Returned) -> Success:
    return returned if isinstance(returned, Success) else Success(response_metadata=dict(returned or {}))


def failure_of(error: BaseException) -> Failure:
    if isinstance(error, NotDone):
        return Failure(error.category, error.retryable, error.reason_code)
    return UNKNOWN
