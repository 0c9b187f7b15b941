"""What the record holds when a run is over, and what has not moved yet."""

from typing import Any

import psycopg
from psycopg.rows import dict_row

# A pending step is tried again every few seconds while it has no slot: one that is due for 30 s is forgotten.
QUERIES = {
    "attempts": """
        SELECT a.id, a.idempotency_key AS key, a.workflow_slug AS slug, a.state, a.reason_code, a.effect, a.connector,
               a.runtime_mode AS mode, a.origin_step IS NOT NULL AS of_step,
               a.lease_expires_at IS NOT NULL AND a.lease_expires_at < now() AS lease_over,
               coalesce(a.lease_expires_at > now(), false) AS leased,
               r.status AS review, r.expires_at > now() AS review_in_time
        FROM attempts_attempt a LEFT JOIN attempts_review r ON r.attempt_id = a.id""",
    "runs": """
        SELECT i.id, i.case_id, i.state, i.halt_reason, i.deadline_at < now() AS overdue,
               (SELECT count(*) FROM workflows_workflowstep s WHERE s.instance_id = i.id AND
                (s.state IN ('in_progress', 'waiting_approval') AND coalesce(s.timeout_at, i.deadline_at) > now()
                 OR s.state = 'pending' AND coalesce(s.next_eligible_at, i.deadline_at) > now() - interval '30 s')
               ) AS waiting_steps,
               (SELECT concat_ws(' ', s.step_id, s.step_kind, s.state, s.outcome, s.timeout_at - now(), a.state,
                a.reason_code) FROM workflows_workflowstep s LEFT JOIN attempts_attempt a ON a.id = s.governed_attempt
                WHERE s.instance_id = i.id ORDER BY s.number DESC LIMIT 1) AS last_step
        FROM workflows_workflowinstance i""",
    "events": "SELECT event_id AS id FROM workflows_workflowevent",
    "outbox": "SELECT id, event_type, status, tries FROM workflows_outboxevent WHERE status <> 'sent'",
    "deliveries": "SELECT id, event_id, state, tries, next_try_at > now() AS later FROM workflows_webhookdelivery",
    # Nobody forges anything until the state is read: whatever the checks found or stopped is a false alarm.
    "alarms": """
        SELECT 'fault' AS kind, "table" || ' ' || row AS what FROM governance_recordfault
        UNION ALL SELECT 'shutdown', reason_code FROM governance_shutdown
        WHERE reason_code IN ('record_differs', 'ledger_inconsistent')""",
    "intents": "SELECT attempt_id AS attempt, count(*) AS count FROM attempts_dispatchintent GROUP BY attempt_id",
}
# What our own processes have yet to do. Zero means that the stack has come to rest.
MOVING = """
    SELECT (SELECT count(*) FROM attempts_attempt WHERE state = 'approved-for-execution' AND runtime_mode = 'active'
            AND connector <> 'external')
         + (SELECT count(*) FROM workflows_outboxevent WHERE status = 'pending')
         + (SELECT count(*) FROM workflows_webhookdelivery WHERE state = 'pending' AND next_try_at <= now())
         + (SELECT count(*) FROM workflows_workflowinstance WHERE state = 'queued')"""


def moving(url: str) -> int:
    with psycopg.connect(url) as connection:
        row = connection.execute(MOVING).fetchone()
        return int(row[0]) if row else 0


def final_state(url: str) -> dict[str, list[dict[str, Any]]]:
    with psycopg.connect(url, row_factory=dict_row) as connection:
        found = {name: connection.execute(query).fetchall() for name, query in QUERIES.items()}  # type: ignore[call-overload]
    return {name: [{key: plain(value) for key, value in row.items()} for row in rows] for name, rows in found.items()}


def plain(value: Any) -> Any:
    return value if value is None or isinstance(value, bool | int | str) else str(value)
