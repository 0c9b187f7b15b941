"""SQL of the due messages, in lines: one per organization."""

# The oldest due messages of each organization. The recursion jumps from organization to organization by the index
# `notification_line`: a DISTINCT would read every message that waits, so that one long line would slow down all others.
# Messages of a route that another worker is sending wait: a receiver that hangs must not occupy all workers.
HEADS = """
WITH RECURSIVE line AS (
    (SELECT organization_id FROM attempts_notification WHERE state = 'pending' ORDER BY organization_id LIMIT 1)
    UNION ALL
    SELECT following.organization_id FROM line CROSS JOIN LATERAL (
        SELECT organization_id FROM attempts_notification
        WHERE state = 'pending' AND organization_id > line.organization_id ORDER BY organization_id LIMIT 1
    ) following
)
SELECT line.organization_id, organization.capacity_units, head.id
FROM line JOIN governance_organization organization ON organization.id = line.organization_id
CROSS JOIN LATERAL (
    SELECT id, next_try_at FROM attempts_notification one
    WHERE organization_id = line.organization_id AND state = 'pending' AND next_try_at <= %(at)s
        AND (leased_until IS NULL OR leased_until <= %(at)s)
        AND NOT EXISTS (
            SELECT 1 FROM attempts_notification busy WHERE busy.route_id = one.route_id AND busy.leased_until > %(at)s
        )
    ORDER BY next_try_at, id LIMIT %(each)s
) head
ORDER BY head.next_try_at, head.id
"""
