"""How many runs of an organization may be under way, and start, at once (S3 3.4)."""

from django.db import connection

from governance.models import Organization
from governance.throttling import Limit, throttle_take

# Reads no more rows than the cap, however many wait.
UNDER_WAY = """
SELECT count(*) FROM (
    SELECT 1 FROM workflows_workflowinstance
    WHERE organization_id = %(organization)s AND state = 'running' LIMIT %(cap)s
) running
"""
# Starts of one organization follow each other only when so few places are left that two could take the same one.
ONE_BY_ONE = "SELECT pg_advisory_xact_lock(hashtextextended('workflow_runs ' || %(organization)s, 0))"
FEW = 20


def has_room(*, organization: Organization) -> bool:
    """Runs per minute and runs at once. Counters that cannot be read count as full. In the transaction that
    starts the run."""
    if not has_place(organization=organization):
        return False
    limit = Limit("runs", str(organization.id), organization.max_runs_per_min, 60)
    return throttle_take(limits=[limit]).status == "ok"


def has_place(*, organization: Organization) -> bool:
    """Runs at once. Two that ask at the same time while few places are left follow each other until they commit."""
    facts: dict[str, str | int] = {"organization": str(organization.id), "cap": organization.max_concurrency}
    with connection.cursor() as cursor:
        cursor.execute(UNDER_WAY, facts)
        (under_way,) = cursor.fetchone()
        if 0 < organization.max_concurrency - under_way <= FEW:
            cursor.execute(ONE_BY_ONE, facts)
            cursor.execute(UNDER_WAY, facts)
            (under_way,) = cursor.fetchone()
    return bool(under_way < organization.max_concurrency)
