"""Does every region of record have a profile, does the contract list it, and may records be kept here?"""

from typing import Final

from governance.enforcement.case import Case
from governance.enforcement.verdict import EvaluatorResult, allow, deny
from governance.regions import EffectiveProfile, residency_allows

NAME: Final = "region"


def evaluate(case: Case) -> EvaluatorResult:
    contract, profile = case.contract, case.region
    here, regions = case.facts["deployment_region"], sorted(set(case.facts["organization"]["regions"]))
    inputs = {
        "regions": regions,
        "deployment_region": here,
        "without_profile": _without_profile(regions, profile),
        "outside_contract": sorted(set(regions) - contract.regions) if contract else [],
    }
    if profile is None or not regions or inputs["without_profile"]:
        return deny(NAME, "region_unset", **inputs)
    if contract is None:
        return deny(NAME, "attempt_creation_disabled", **inputs, not_evaluated="contract")
    if inputs["outside_contract"] or not here or not residency_allows(profile, deployment_region=here):
        return deny(NAME, "residency_violation", **inputs)
    return allow(NAME, **inputs)


def _without_profile(regions: list[str], profile: EffectiveProfile | None) -> list[str]:
    return sorted(set(regions) - set(profile.regions)) if profile else regions
