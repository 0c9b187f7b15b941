"""Does every region of record have a profile, does the contract list it, and may records and their copies be kept where
they are?"""

from typing import Final

from governance.enforcement.rules.case import Case
from governance.enforcement.rules.verdict import EvaluatorResult, allow, deny
from governance.regions.rules import failover_allows, residency_allows

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
    # A copy is a record too: where one may not be kept, nothing may be recorded.
    refused = [
        place
        for place in case.facts.get("standby_regions", ())
        if not failover_allows(terms.profile, standby_region=place)
    ]
    if refused:
        return deny(NAME, "residency_violation", **inputs, standby_refused=refused)
    return allow(NAME, **inputs)
