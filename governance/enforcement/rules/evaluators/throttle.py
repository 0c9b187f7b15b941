"""Did the throttles accept the request? If the counters could not be read, it is denied."""

from typing import Final

from governance.enforcement.rules.case import Case
from governance.enforcement.rules.names import TAKEN
from governance.enforcement.rules.verdict import EvaluatorResult, allow, deny

NAME: Final = "throttle"
_REASONS: Final = {"limited": "rate_limited", "suspended": "misuse_suspended", "unavailable": "throttle_unavailable"}


def evaluate(case: Case) -> EvaluatorResult:
    throttle = case.facts["throttle"]
    status, retry_after = throttle["status"], throttle.get("retry_after")
    if status in ("ok", TAKEN):
        return allow(NAME, status=status)
    # Older environments do not say which limit it was; their results must come out without it.
    cap = {"cap": throttle["cap"]} if "cap" in throttle else {}
    # An unknown status is a denial too, and is not repeated in the inputs.
    return deny(
        NAME,
        _REASONS.get(status, "throttle_unavailable"),
        status=status if status in _REASONS else "unknown",
        exceeded=throttle.get("exceeded"),
        retry_after=None if retry_after is None else int(retry_after),
        **cap,
    )
