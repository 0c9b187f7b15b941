"""Which outages there were, the one that lasts among them, and what they do to a deadline."""

from datetime import datetime, timedelta

from django.db import connection

from governance.outages.rules import MOST, SILENCE, Outage, fair_deadline

# The last one may still last: no heartbeat has come since, so nobody has recorded it.
SINCE = """
SELECT began_at, ended_at FROM governance_outageinterval WHERE ended_at > %(since)s
UNION ALL
SELECT at, statement_timestamp() FROM governance_clockbeat
WHERE at < statement_timestamp() - make_interval(secs => %(silence)s)
ORDER BY 1
"""


def outages_since(since: datetime) -> list[Outage]:
    with connection.cursor() as cursor:
        cursor.execute(SINCE, {"since": since, "silence": SILENCE.total_seconds()})
        return [Outage(*row) for row in cursor.fetchall()]


def deadline_in_force(deadline: datetime, *, began: datetime, now: datetime) -> datetime:
    """The deadline, or a later one if Holdpoint could not act for a part of the time since `began`."""
    # Outages are read for deadlines that seem to be over. All others cost no statement.
    if deadline > now:
        return deadline
    return fair_deadline(deadline, began=began, outages=outages_since(began))


def lost_lately(now: datetime) -> timedelta:
    """The longest by which any deadline can be later now."""
    return min(MOST, sum((one.ended - one.began for one in outages_since(now - MOST)), timedelta()))
