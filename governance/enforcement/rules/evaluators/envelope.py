"""Is the attempt's identity complete, and does the action fit the contract it is made under?"""

from typing import Any, Final

from governance.enforcement.rules.case import Case
from governance.enforcement.rules.contract_terms import ContractTerms, version_text
from governance.enforcement.rules.names import RISK_TIERS
from governance.enforcement.rules.verdict import EvaluatorResult, allow, deny

NAME: Final = "envelope"
_ABSENT: Final = (None, "")


def evaluate(case: Case) -> EvaluatorResult:
    contract = case.contract
    if contract is None:
        return deny(NAME, "attempt_creation_disabled", not_evaluated="contract")
    inputs: dict[str, Any] = {
        "missing": _missing(case, contract),
        "malformed": _malformed(case, contract),
        "mismatched": _mismatched(case, contract),
    }
    reason = _reason(**inputs)
    # Only where the contract declares such fields: results of decisions under older snapshots stay what they are.
    if contract.not_applicable:
        inputs["not_applicable"] = [name for name in contract.not_applicable if _is_given(case, name)]
        reason = reason or ("envelope_incomplete" if inputs["not_applicable"] else None)
    return deny(NAME, reason, **inputs) if reason else allow(NAME, **inputs)


def _reason(*, missing: list[str], malformed: list[str], mismatched: list[str]) -> str | None:
    if missing or malformed or "slug" in mismatched or "version" in mismatched:
        return "envelope_incomplete"
    if "runtime_mode" in mismatched:
        return "runtime_mode_not_allowed"
    return "effect_mismatch" if mismatched else None


def _missing(case: Case, contract: ContractTerms) -> list[str]:
    """Required fields without a value."""
    # A value that the boundary refused was present. In the stored request it is absent, and a replay must not call it
    # missing.
    envelope = case.request["envelope"]
    return [
        name
        for name in contract.required
        if envelope.get(name) in _ABSENT and case.inspection.may_judge(f"/envelope/{name}")
    ]


def _is_given(case: Case, name: str) -> bool:
    # A value that the boundary refused was given too.
    return case.request["envelope"].get(name) not in _ABSENT or not case.inspection.may_judge(f"/envelope/{name}")


def _malformed(case: Case, contract: ContractTerms) -> list[str]:
    values = ((name, shape, case.reference("envelope", name)) for name, shape in contract.shapes.items())
    return [name for name, shape, value in values if value not in _ABSENT and not shape.fits(value)]


def _mismatched(case: Case, contract: ContractTerms) -> list[str]:
    envelope, action = case.request["envelope"], case.request["action"]
    version = envelope.get("contract_version")
    connector = action.get("connector")
    agrees = {
        "slug": envelope.get("workflow_slug") in (None, contract.slug),
        "version": version is None or version_text(version) == contract.version,
        "runtime_mode": envelope.get("runtime_mode") in contract.runtime_modes,
        "connector": connector == contract.adapter or not case.inspection.may_judge("/action/connector"),
        "risk_tier": RISK_TIERS.index(action["risk_tier"]) <= contract.risk_ceiling,
    }
    return [name for name, fits in agrees.items() if not fits]
