"""Which result decides: deny before needs_approval before allow, and the first evaluator among equals."""

from collections.abc import Sequence
from typing import Final

from governance.enforcement.rules.verdict import EvaluatorResult, Verdict

_STRENGTH: Final = {Verdict.ALLOW: 0, Verdict.NEEDS_APPROVAL: 1, Verdict.DENY: 2}


def winning(results: Sequence[EvaluatorResult]) -> EvaluatorResult:
    """The result that decides. Raises ValueError if there is none."""
    # `max` returns the first of equals, so the fixed order of evaluators chooses the reason code.
    return max(results, key=lambda result: _STRENGTH[result.verdict])
