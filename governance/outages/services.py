"""Notes a heartbeat in the database, and records the outage if the one before is too long ago."""

from datetime import datetime

import structlog
from django.db import connection, transaction

from governance.ledger.services import ledger_append
from governance.outages.models import OutageInterval
from governance.outages.rules import SILENCE
from reasoncodes.base.actors import CLOCK

log = structlog.get_logger("holdpoint.outages")
# The database's clock: workers on several machines may note beats. The row's lock orders them, so that two beats after
# an outage record it once.
BEAT = """
UPDATE governance_clockbeat SET at = statement_timestamp()
FROM (SELECT at FROM governance_clockbeat FOR UPDATE) AS before
RETURNING before.at, governance_clockbeat.at
"""
FIRST = "INSERT INTO governance_clockbeat (id, at) VALUES (1, statement_timestamp()) ON CONFLICT DO NOTHING"


def clock_beat() -> OutageInterval | None:
    """The outage that this heartbeat ends, if one was."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(BEAT)
        row: tuple[datetime, datetime] | None = cursor.fetchone()
        if row is None:
            cursor.execute(FIRST)
            return None
        before, now = row
        return _record(before, now) if now - before > SILENCE else None


def _record(began: datetime, ended: datetime) -> OutageInterval:
    found = OutageInterval(began_at=began, ended_at=ended)
    found.save()
    seconds = round((ended - began).total_seconds())
    ledger_append(
        action="outage.recorded",
        organization_id=None,
        subject_type="outage",
        subject_id=found.id,
        actor=CLOCK,
        at=ended,
        payload={"began_at": began.isoformat(), "ended_at": ended.isoformat(), "seconds": seconds},
    )
    log.warning("outage_recorded", seconds=seconds)
    return found
