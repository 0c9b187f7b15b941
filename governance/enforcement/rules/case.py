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


# Neither class is frozen: they exist for one decision, and setting the fields of a frozen one takes longer.
@dataclass(slots=True)
class Snapshots:
    contract: Loaded[ContractTerms]
    policy: Loaded[PolicyRules]
    region: Loaded[RegionTerms]


@dataclass(slots=True)
class Case:
    """The input of the evaluators, which they must not change. Reading a snapshot that cannot be used raises
    SnapshotError."""

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
        """A reference that the caller wrote, or None if it is absent or may not be judged."""
        # A value that the boundary refused is not stored. An evaluator that used it could not be replayed.
        if self.inspection.clean or self.inspection.may_judge(f"/{part}/{name}"):
            return self.request[part].get(name)
        return None


def load_snapshots(environment: Environment) -> Snapshots:
    """Compiles the snapshots. Never raises: an evaluator that needs a broken one fails when it reads it."""
    # Here and not in an evaluator: the time to compile a new policy must not count as an evaluator's timeout, or its
    # first request could be denied.
    facts = environment.facts
    return Snapshots(
        contract=_CONTRACTS.load(environment.contract, sha256=facts.get("contract_sha256")),
        policy=_POLICIES.load(environment.policy, sha256=facts.get("policy_sha256")),
        region=_REGIONS.load(environment.region, sha256=facts.get("region_sha256")),
    )
