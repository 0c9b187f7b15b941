"""Is the contract open? Law 1: a contract executes nothing unless it is open."""

from typing import Final

from governance.enforcement.rules.case import Case
from governance.enforcement.rules.verdict import EvaluatorResult, allow, deny

NAME: Final = "contract_open"
_CLOSED: Final = {"suspended": "contract_suspended", "retired": "contract_retired"}
_NAMED: Final = ("open", "draft", "suspended", "retired")


def evaluate(case: Case) -> EvaluatorResult:
    contract, state = case.contract, case.facts["contract_state"]
    # Unknown states are not repeated: inputs have only words of our own.
    inputs = {
        "state": state if state in _NAMED else "unknown",
        "contract": f"{contract.slug}/{contract.version}" if contract else None,
    }
    if state == "open" and contract is not None:
        return allow(NAME, **inputs)
    return deny(NAME, _CLOSED.get(state, "attempt_creation_disabled"), **inputs)
