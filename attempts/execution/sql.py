"""SQL of the due attempts that our workers execute, in lines: one per organization, connector and workflow."""

# As in the index `attempt_lines`, word for word: the planner uses a partial index only for what its condition implies.
# Attempts of workflow steps are not in it: their requests go through the outbox.
READY = (
    "state = 'approved-for-execution' AND next_eligible_at IS NOT NULL AND queued_until IS NULL"
    " AND runtime_mode = 'active' AND connector <> 'external' AND origin_step IS NULL"
)
_LINE = "organization_id, connector, workflow_slug"
# The recursion jumps from line to line by the index. A DISTINCT would read every due attempt, so that one long line
# would slow down all others.
LINES = f"""
WITH RECURSIVE line AS (
    (SELECT {_LINE} FROM attempts_attempt WHERE {READY} ORDER BY {_LINE} LIMIT 1)
    UNION ALL
    SELECT following.organization_id, following.connector, following.workflow_slug FROM line CROSS JOIN LATERAL (
        SELECT {_LINE} FROM attempts_attempt
        WHERE {READY} AND ({_LINE}) > (line.organization_id, line.connector, line.workflow_slug)
        ORDER BY {_LINE} LIMIT 1
    ) following
)
"""  # noqa: S608
OLDEST_DUE = f"""
{LINES}
SELECT extract(epoch FROM statement_timestamp() - min(head.next_eligible_at))::float8
FROM line CROSS JOIN LATERAL (
    SELECT next_eligible_at FROM attempts_attempt
    WHERE {READY} AND organization_id = line.organization_id AND connector = line.connector
        AND workflow_slug = line.workflow_slug AND next_eligible_at <= statement_timestamp()
    ORDER BY next_eligible_at LIMIT 1
) head
"""  # noqa: S608
# The oldest due attempts of each line.
HEADS = f"""
{LINES}
SELECT head.id, line.organization_id, organization.slug, organization.capacity_units, line.connector,
    line.workflow_slug, head.request_trace_id, extract(epoch FROM statement_timestamp() - head.next_eligible_at)::float8
FROM line JOIN governance_organization organization ON organization.id = line.organization_id
CROSS JOIN LATERAL (
    SELECT id, next_eligible_at, request_trace_id FROM attempts_attempt
    WHERE {READY} AND organization_id = line.organization_id AND connector = line.connector
        AND workflow_slug = line.workflow_slug AND next_eligible_at <= statement_timestamp()
        AND (lease_expires_at IS NULL OR lease_expires_at < statement_timestamp())
        AND id <> ALL(%(taken)s)
    ORDER BY next_eligible_at LIMIT %(each)s
) head
"""  # noqa: S608
