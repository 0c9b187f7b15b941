"""Reading. Nothing here writes; locks are named as such."""

from governance.selectors.contract import (
    contract_documents,
    contract_get,
    contract_list,
    contract_lock,
    readiness_board,
)
from governance.selectors.decision import (
    SnapshotBroken,
    decision_get,
    decision_list,
    decisions_newest_first,
    snapshot_load,
)
from governance.selectors.identity import (
    Credential,
    author_of,
    credential_for_secret,
    credential_for_signature,
    has_role,
    organization_of,
    organizations_where,
    people_behind,
    person_actor,
)
from governance.selectors.intake import (
    Also,
    Arrival,
    IntakeFacts,
    OwnArrival,
    intake_arrival,
    intake_facts,
    intake_own_arrival,
)
from governance.selectors.ledger import ledger_entry_get, ledger_entry_list
from governance.selectors.ledger_tree import (
    checkpoint_get,
    checkpoint_latest,
    checkpoint_list,
    consistency,
    entry_proof,
    ledger_keys,
    sealer_lag,
)
from governance.selectors.policy import policy_get, policy_list, policy_lock, reviewer_tiers
from governance.selectors.records import region_profile_list, violation_list
from governance.selectors.shutdown import shutdown_get, shutdown_list, shutdown_preview, shutdowns_engaged
from governance.selectors.tenant import tenant_get

__all__ = [
    "Also",
    "Arrival",
    "Credential",
    "IntakeFacts",
    "OwnArrival",
    "SnapshotBroken",
    "author_of",
    "checkpoint_get",
    "checkpoint_latest",
    "checkpoint_list",
    "consistency",
    "contract_documents",
    "contract_get",
    "contract_list",
    "contract_lock",
    "credential_for_secret",
    "credential_for_signature",
    "decision_get",
    "decision_list",
    "decisions_newest_first",
    "entry_proof",
    "has_role",
    "intake_arrival",
    "intake_facts",
    "intake_own_arrival",
    "ledger_entry_get",
    "ledger_entry_list",
    "ledger_keys",
    "organization_of",
    "organizations_where",
    "people_behind",
    "person_actor",
    "policy_get",
    "policy_list",
    "policy_lock",
    "readiness_board",
    "region_profile_list",
    "reviewer_tiers",
    "sealer_lag",
    "shutdown_get",
    "shutdown_list",
    "shutdown_preview",
    "shutdowns_engaged",
    "snapshot_load",
    "tenant_get",
    "violation_list",
]
