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
    has_role,
    organization_of,
    organizations_where,
    people_behind,
    person_actor,
)
from governance.selectors.intake import Arrival, IntakeFacts, intake_arrival, intake_facts
from governance.selectors.ledger import ledger_entry_get, ledger_entry_list
from governance.selectors.policy import policy_get, policy_list, policy_lock, reviewer_tiers
from governance.selectors.records import region_profile_list, violation_list
from governance.selectors.shutdown import shutdown_get, shutdown_list, shutdown_preview, shutdowns_engaged
from governance.selectors.tenant import tenant_get

__all__ = [
    "Arrival",
    "Credential",
    "IntakeFacts",
    "SnapshotBroken",
    "author_of",
    "contract_documents",
    "contract_get",
    "contract_list",
    "contract_lock",
    "credential_for_secret",
    "decision_get",
    "decision_list",
    "decisions_newest_first",
    "has_role",
    "intake_arrival",
    "intake_facts",
    "ledger_entry_get",
    "ledger_entry_list",
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
    "shutdown_get",
    "shutdown_list",
    "shutdown_preview",
    "shutdowns_engaged",
    "snapshot_load",
    "tenant_get",
    "violation_list",
]
