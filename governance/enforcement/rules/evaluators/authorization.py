"""May this caller, of this organization, create attempts under this contract?"""

from typing import Final

from governance.enforcement.rules.case import Case
from governance.enforcement.rules.verdict import EvaluatorResult, allow, deny

NAME: Final = "authorization"
SCOPE: Final = "attempts:create"


def evaluate(case: Case) -> EvaluatorResult:
    caller, organization, contract = case.facts["caller"], case.facts["organization"], case.contract
    checks = {
        "active_caller": caller["status"] == "active",
        SCOPE: SCOPE in caller["scopes"],
        "active_organization": organization["status"] == "active",
        "contract_of_organization": contract is not None and contract.organization_id == organization["id"],
    }
    lacking = [name for name, holds in checks.items() if not holds]
    if not lacking:
        return allow(NAME, lacking=lacking)
    suspended = caller["status"] == "suspended"
    return deny(NAME, "misuse_suspended" if suspended else "not_authorized", lacking=lacking)
