"""Does an engaged shutdown cover the request? A drill stops nothing."""

from collections.abc import Mapping
from typing import Any, Final

from governance.enforcement.rules.case import Case
from governance.enforcement.rules.contract_terms import version_text
from governance.enforcement.rules.verdict import EvaluatorResult, allow, deny

NAME: Final = "shutdown"


def evaluate(case: Case) -> EvaluatorResult:
    shutdowns = case.facts["shutdowns"]
    targets = _targets(case) if shutdowns else {}
    covering = [shutdown for shutdown in shutdowns if _covers(shutdown, targets)]
    inputs = {
        "engaged": len(shutdowns),
        "covering": sorted(shutdown["id"] for shutdown in covering if not shutdown.get("drill")),
        "drills": sorted(shutdown["id"] for shutdown in covering if shutdown.get("drill")),
    }
    return deny(NAME, "shutdown_engaged", **inputs) if inputs["covering"] else allow(NAME, **inputs)


def _targets(case: Case) -> dict[str, frozenset[str] | None]:
    """For each scope, the targets that cover this request. None: it is not known, so any target of this scope does."""
    organization, connector = case.facts["organization"], case.reference("action", "connector")
    return {
        "organization": frozenset([organization["id"]]),
        "contract": _contract_names(case),
        "connector": frozenset([connector]) if connector else None,
        "region": frozenset(organization["regions"]) or None,
    }


def _contract_names(case: Case) -> frozenset[str] | None:
    envelope, contract = case.request["envelope"], case.contract
    pairs = [(envelope.get("workflow_slug"), envelope.get("contract_version"))]
    if contract is not None:
        pairs.append((contract.slug, contract.version))
    names = {slug for slug, _ in pairs if slug}
    names.update(f"{slug}/{version_text(version)}" for slug, version in pairs if slug and version is not None)
    return frozenset(names) or None


def _covers(shutdown: Mapping[str, Any], targets: Mapping[str, frozenset[str] | None]) -> bool:
    """Whether a shutdown covers the request."""
    # `global`, an unknown scope and a missing target cover everything: a shutdown that cannot be understood must stop
    # too much and not too little.
    names, target = targets.get(shutdown["scope"]), shutdown.get("target")
    return names is None or not target or target in names
