"""Law 6: nothing enters the record that the contract's boundary document does not admit."""

from typing import Final

from governance.enforcement.rules.case import Case
from governance.enforcement.rules.verdict import EvaluatorResult, allow, deny

NAME: Final = "metadata_boundary"


def evaluate(case: Case) -> EvaluatorResult:
    """Asked before the others and only after an inspection; a failed one is this evaluator's failure."""
    findings = case.inspection.findings
    if findings:
        places = [{"pointer": finding.pointer, "rule": finding.rule} for finding in findings]
        return deny(NAME, "metadata_boundary", findings=places)
    if case.contract is None:
        return deny(NAME, "attempt_creation_disabled", not_evaluated="contract")
    return allow(NAME)
