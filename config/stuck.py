"""What has not moved for longer than it should, in one statement. Everything that has not ended has a moment at which
the clock or a worker moves it; what is still there long after that moment is stuck.

What waits for a person, a slot or a retry is not: its moment is ahead. Each part reads the front of a partial index."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from django.conf import settings
from django.db import connection
from prometheus_client import CollectorRegistry, Gauge

from attempts.execution.sql import LINES, READY

# Nobody needs a larger number, and a part must not cost more than this many rows.
COUNTED = 1000
# %(late)s: the moment before which something should have moved. `lost` is what outages added to the deadlines of
# others (attempts/reviews, attempts/execution): these rows still have time.
LOST = """
lost AS MATERIALIZED (
    SELECT least(coalesce(sum(ended_at - began_at), interval '0'), interval '1 day') AS time
    FROM governance_outageinterval WHERE ended_at > %(late)s - interval '1 day'
)
"""
_STEPS = "workflows_workflowstep s JOIN workflows_workflowinstance i ON i.id = s.instance_id"
# By line and by endpoint: one with a million rows that are not late must not be read through.
_READY_HEADS = f"""{LINES} SELECT line.organization_id, head.next_eligible_at FROM line CROSS JOIN LATERAL (
    SELECT next_eligible_at FROM attempts_attempt WHERE {READY} AND organization_id = line.organization_id
        AND connector = line.connector AND workflow_slug = line.workflow_slug AND next_eligible_at < %(late)s
    ORDER BY next_eligible_at LIMIT {COUNTED}) head"""  # noqa: S608
_PENDING = f"""SELECT next_try_at FROM workflows_webhookdelivery
    WHERE endpoint_id = e.id AND state = 'pending' ORDER BY next_try_at LIMIT {COUNTED}"""  # noqa: S608
_RELEASED = "a.state = 'approved-for-execution'"
# name: (from, the moment, further conditions, organization). In the order in which people read them.
PARTS: Final[tuple[tuple[str, str, str, str, str], ...]] = (
    (
        "runs",
        "workflows_workflowinstance i",
        "i.deadline_at",
        "i.state IN ('queued', 'running', 'waiting_approval')",
        "i.organization_id",
    ),
    ("runs", _STEPS, "s.timeout_at", "s.state IN ('in_progress', 'waiting_approval')", "i.organization_id"),
    ("runs", _STEPS, "s.next_eligible_at", "s.state = 'pending'", "i.organization_id"),
    ("runs", "workflows_nudge n", "n.due_at", "TRUE", "n.organization_id"),
    ("attempts", "attempts_attempt a", "a.lease_expires_at + (SELECT time FROM lost)", _RELEASED, "a.organization_id"),
    # Those that our own workers execute. The others wait until their executor asks, and their page says so.
    ("attempts", f"({_READY_HEADS}) a", "a.next_eligible_at", "TRUE", "a.organization_id"),
    (
        "attempts",
        "attempts_attempt a",
        "a.queued_until + (SELECT time FROM lost)",
        "a.queued_until IS NOT NULL",
        "a.organization_id",
    ),
    (
        "holds",
        "attempts_review r",
        "r.expires_at + (SELECT time FROM lost)",
        "r.status = 'requested'",
        "r.organization_id",
    ),
    ("outbox", "workflows_outboxevent o", "o.next_try_at", "o.status = 'pending'", "o.organization_id"),
    # Of endpoints that answer: what a failing one keeps waiting is held back until `held_until`, and says so.
    (
        "webhooks",
        f"workflows_webhookendpoint e CROSS JOIN LATERAL ({_PENDING}) d",
        "d.next_try_at",
        "e.enabled AND (e.held_until IS NULL OR e.held_until < %(late)s)",
        "e.organization_id",
    ),
    (
        "evidence",
        "governance_evidencebundle b",
        "b.resume_at",
        "b.state IN ('requested', 'building')",
        "b.organization_id",
    ),
)
NAMES: Final = tuple(dict.fromkeys(name for name, *_ in PARTS))


@dataclass(frozen=True, slots=True)
class Stuck:
    """`count` up to 1,000 for each way in which it can be stuck; `oldest_s` since it should have moved."""

    count: int
    oldest_s: float


def _part(name: str, source: str, moment: str, condition: str, organization: str) -> str:
    # Compared by the bare column, so that the index is used: `moment` may add what outages gave.
    column, _, more = moment.partition(" + ")
    late = f"%(late)s - {more}" if more else "%(late)s"
    return f"""(
    SELECT '{name}' AS name, count(*) AS count, min(due) AS due FROM (
        SELECT {moment} AS due FROM {source}
        WHERE {condition} AND {column} < {late}
            AND (%(organizations)s::uuid[] IS NULL OR {organization} = ANY (%(organizations)s::uuid[]))
        ORDER BY {column} LIMIT {COUNTED}) late)
    """  # noqa: S608


SQL: Final = f"""
WITH {LOST}
SELECT name, sum(count)::int, min(due) FROM ({" UNION ALL ".join(_part(*one) for one in PARTS)}) parts GROUP BY name
"""  # noqa: S608


def stuck(*, at: datetime, organizations: Collection[UUID] | None = None) -> dict[str, Stuck]:
    """Every kind of thing, also those of which none is stuck. `organizations`: only theirs; None: all."""
    late = at.timestamp() - settings.BEAT_HEARTBEAT_LIMIT_SECONDS
    values = {
        "late": datetime.fromtimestamp(late, tz=at.tzinfo),
        "organizations": None if organizations is None else [str(one) for one in organizations],
    }
    with connection.cursor() as cursor:
        cursor.execute(SQL, values)
        rows = {name: (count, due) for name, count, due in cursor.fetchall()}
    return {
        name: Stuck(count, round((at - due).total_seconds(), 1) if due else 0.0)
        for name, (count, due) in ((name, rows[name]) for name in NAMES)
    }


def stuck_words(found: dict[str, Stuck]) -> list[str]:
    return [
        f"{one.count:,} {name} have not moved for longer than they should, the oldest for {one.oldest_s:,.0f} s"
        for name, one in found.items()
        if one.count
    ]


def fill_stuck(registry: CollectorRegistry, at: datetime) -> None:
    words = "Things that have not moved for longer than they should, up to 1,000 in each way."
    count = Gauge("holdpoint_stuck", words, ["what"], registry=registry)
    words = "Since the oldest of them should have moved."
    oldest = Gauge("holdpoint_stuck_oldest_seconds", words, ["what"], registry=registry)
    for name, one in stuck(at=at).items():
        count.labels(name).set(one.count)
        oldest.labels(name).set(one.oldest_s)
