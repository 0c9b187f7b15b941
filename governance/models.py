"""Django looks for the tables of an app here. Import each one from the room it belongs to."""

from governance.authority import models as authority
from governance.authorship import models as authorship
from governance.boundary import models as boundary
from governance.console import models as console
from governance.contracts import models as contracts
from governance.enforcement import models as enforcement
from governance.evidence import models as evidence
from governance.identity import models as identity
from governance.integrity import models as integrity
from governance.ledger import models as ledger
from governance.outages import models as outages
from governance.people import models as people
from governance.policies import models as policies
from governance.record import models as record
from governance.regions import models as regions
from governance.retention import models as retention
from governance.schedule import models as schedule
from governance.sealing import models as sealing
from governance.shutdown import models as shutdown
from governance.tenancy import models as tenancy
from governance.violations import models as violations

__all__ = [
    "authority",
    "authorship",
    "boundary",
    "console",
    "contracts",
    "enforcement",
    "evidence",
    "identity",
    "integrity",
    "ledger",
    "outages",
    "people",
    "policies",
    "record",
    "regions",
    "retention",
    "schedule",
    "sealing",
    "shutdown",
    "tenancy",
    "violations",
]
