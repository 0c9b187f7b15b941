"""Deny beats needs_approval beats allow. The reason is that of the first evaluator with the winning verdict."""

from collections.abc import Sequence
from typing import Final

from governance.enforcement.rules.verdict import EvaluatorResult, Verdict

_STRENGTH: Final = {Verdict.ALLOW: 0, Verdict.NEEDS_APPROVAL: 1, Verdict.DENY: 2}


def winning(results: Sequence[EvaluatorResult]) -> EvaluatorResult:
    """The result that decides; `max` keeps the first among equals. Nothing to choose from raises ValueError."""
    return max(results, key=lambda result: _STRENGTH[result.verdict])
