"""What a process does before its first request or task: the record is compared with its witnesses."""

import structlog
from django.db import connection

from governance.deny_mode import ledger_guard

log = structlog.get_logger("holdpoint.startup")


def ledger_checked() -> None:
    """A database that is away is no reason not to start: requests answer 503 until it is back; the clock asks again."""
    try:
        if not ledger_guard():
            log.error("started_in_deny_mode")
    except Exception as error:
        log.warning("ledger_not_checked", exc_info=error)
    finally:
        connection.close()
