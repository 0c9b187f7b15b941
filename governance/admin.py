"""Django looks for the console pages of an app here. Each is defined in its room."""

from governance.authority import admin as authority
from governance.console.admin import reason_codes as console_reason_codes
from governance.contracts.admin import contracts as contracts_contracts
from governance.enforcement import admin as enforcement
from governance.evidence import admin as evidence
from governance.identity import admin as identity
from governance.integrity import admin as integrity
from governance.ledger import admin as ledger
from governance.people.admin import people as people_people
from governance.people.admin import service_accounts as people_service_accounts
from governance.policies.admin import policies as policies_policies
from governance.regions import admin as regions
from governance.retention.admin import erasure as retention_erasure
from governance.retention.admin import requests as retention_requests
from governance.sealing import admin as sealing
from governance.shutdown import admin as shutdown
from governance.tenancy import admin as tenancy
from governance.violations import admin as violations

__all__ = [
    "authority",
    "console_reason_codes",
    "contracts_contracts",
    "enforcement",
    "evidence",
    "identity",
    "integrity",
    "ledger",
    "people_people",
    "people_service_accounts",
    "policies_policies",
    "regions",
    "retention_erasure",
    "retention_requests",
    "sealing",
    "shutdown",
    "tenancy",
    "violations",
]
