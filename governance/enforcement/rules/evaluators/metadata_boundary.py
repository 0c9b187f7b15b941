"""Did the boundary find something? Law 6: only what the contract's boundary document allows enters the record."""

from typing import Final

from governance.enforcement.rules.case import Case
from governance.enforcement.rules.verdict import EvaluatorResult, allow, deny

NAME: Final = "metadata_boundary"


def evaluate(case: Case) -> EvaluatorResult:
    """Runs before the other evaluators, and only after a successful inspection. A failed inspection is recorded as a
    failure of this evaluator."""
    findings = case.inspection.findings
    if findings:
        places = [{"pointer": finding.pointer, "rule": finding.rule} for finding in findings]
        return deny(NAME, "metadata_boundary", findings=places)
    if case.contract is None:
        return deny(NAME, "attempt_creation_disabled", not_evaluated="contract")
    return allow(NAME)
