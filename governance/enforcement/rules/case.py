"""What the evaluators look at: one request, its facts, the compiled snapshots and the boundary's findings."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from governance.enforcement.rules.contract_terms import ContractTerms, compile_contract
from governance.enforcement.rules.environment import Environment
from governance.enforcement.rules.inspection import Inspection
from governance.enforcement.rules.policy_rules import PolicyRules, compile_policy
from governance.enforcement.rules.region_terms import RegionTerms, compile_region
from governance.enforcement.rules.snapshots import Loaded, SnapshotCache

_CONTRACTS: Final = SnapshotCache(compile_contract)
_POLICIES: Final = SnapshotCache(compile_policy)
_REGIONS: Final = SnapshotCache(compile_region)


# Neither class is frozen: they live for one decision, and freezing would cost more than they do.
@dataclass(slots=True)
class Snapshots:
    contract: Loaded[ContractTerms]
    policy: Loaded[PolicyRules]
    region: Loaded[RegionTerms]


@dataclass(slots=True)
class Case:
    """Evaluators read it and change nothing. Taking a snapshot that cannot be used raises SnapshotError."""

    request: Mapping[str, Any]
    metadata: Mapping[str, Any]
    facts: Mapping[str, Any]
    snapshots: Snapshots
    inspection: Inspection

    @property
    def contract(self) -> ContractTerms | None:
        return self.snapshots.contract.get()

    @property
    def policy(self) -> PolicyRules | None:
        return self.snapshots.policy.get()

    @property
    def region(self) -> RegionTerms | None:
        return self.snapshots.region.get()

    def reference(self, part: str, name: str) -> Any:
        """A value that the caller wrote, or nothing if it is absent or must not be looked at."""
        if self.inspection.clean or self.inspection.may_judge(f"/{part}/{name}"):
            return self.request[part].get(name)
        return None


def load_snapshots(environment: Environment) -> Snapshots:
    """Never raises. Compiling happens here, outside the time that an evaluator is given."""
    facts = environment.facts
    return Snapshots(
        contract=_CONTRACTS.load(environment.contract, sha256=facts.get("contract_sha256")),
        policy=_POLICIES.load(environment.policy, sha256=facts.get("policy_sha256")),
        region=_REGIONS.load(environment.region, sha256=facts.get("region_sha256")),
    )
