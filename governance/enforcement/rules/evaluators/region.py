"""Does every region of record have a profile, does the contract list it, and may records be kept here?"""

from typing import Final

from governance.enforcement.rules.case import Case
from governance.enforcement.rules.verdict import EvaluatorResult, allow, deny
from governance.regions.rules import residency_allows

NAME: Final = "region"


def evaluate(case: Case) -> EvaluatorResult:
    contract, terms, here = case.contract, case.region, case.facts["deployment_region"]
    regions = frozenset(case.facts["organization"]["regions"])
    inputs = {
        "regions": sorted(regions),
        "deployment_region": here,
        "without_profile": sorted(regions - terms.codes if terms else regions),
        "outside_contract": sorted(regions - contract.regions) if contract else [],
    }
    if terms is None or not regions or inputs["without_profile"]:
        return deny(NAME, "region_unset", **inputs)
    if contract is None:
        return deny(NAME, "attempt_creation_disabled", **inputs, not_evaluated="contract")
    if inputs["outside_contract"] or not here or not residency_allows(terms.profile, deployment_region=here):
        return deny(NAME, "residency_violation", **inputs)
    return allow(NAME, **inputs)
