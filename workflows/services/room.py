"""How many runs of an organization may be under way, and start, at once (S3 3.4)."""

from typing import Any

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


def has_room(*, organization: Organization, under_way: int | None = None) -> bool:
    """Runs per minute and runs at once. Counters that cannot be read count as full. In the transaction that
    starts the run; `under_way` is how many it has just counted."""
    if not has_place(organization=organization, under_way=under_way):
        return False
    limit = Limit("runs", str(organization.id), organization.max_runs_per_min, 60)
    return throttle_take(limits=[limit]).status == "ok"


def has_place(*, organization: Organization, under_way: int | None = None) -> bool:
    """Runs at once. Two that ask at the same time while few places are left follow each other until they commit."""
    cap = organization.max_concurrency
    if under_way is not None and not 0 < cap - under_way <= FEW:
        return under_way < cap
    facts: dict[str, str | int] = {"organization": str(organization.id), "cap": cap}
    with connection.cursor() as cursor:
        if under_way is None:
            under_way = _count(cursor, facts)
        if 0 < cap - under_way <= FEW:
            cursor.execute(ONE_BY_ONE, facts)
            under_way = _count(cursor, facts)
    return under_way < cap


def _count(cursor: Any, facts: dict[str, str | int]) -> int:
    cursor.execute(UNDER_WAY, facts)
    (under_way,) = cursor.fetchone()
    return int(under_way)
