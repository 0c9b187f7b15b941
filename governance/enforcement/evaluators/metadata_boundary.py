"""Law 6: nothing enters the record that the contract's boundary document does not admit."""

from typing import Final

from governance.enforcement.case import Case
from governance.enforcement.verdict import EvaluatorResult, allow, deny

NAME: Final = "metadata_boundary"


def evaluate(case: Case) -> EvaluatorResult:
    """The inspection is done by now; if it failed, this evaluator is on record as failed and is not asked."""
    findings = case.inspection.findings
    if findings:
        places = [{"pointer": finding.pointer, "rule": finding.rule} for finding in findings]
        return deny(NAME, "metadata_boundary", findings=places)
    if case.contract is None:
        return deny(NAME, "attempt_creation_disabled", not_evaluated="contract")
    return allow(NAME)
