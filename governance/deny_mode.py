"""The check that every process makes before it works, and the clock after that: the record against its witnesses."""

from django.utils import timezone

from governance.ledger.configured import known_keys
from governance.services.divergence import divergence_guard
from governance.witnesses import witnesses_configured
from reasoncodes.tenancy import every_tenant


def ledger_guard() -> bool:
    """Whether work may go on: no witness holds a signed head that the record does not continue."""
    with every_tenant():
        denied = divergence_guard(at=timezone.now(), witnesses=witnesses_configured(), keys=known_keys())
    return denied is None
