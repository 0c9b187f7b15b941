"""Starts queued runs while their organizations have free slots, fairly between organizations by capacity (S3 3.4)."""

from datetime import datetime
from enum import Enum, auto
from uuid import UUID

from django.db import connection

from attempts.execution.rules import FairRound, Share
from attempts.lifecycle.services.due import each_due
from reasoncodes.base.actors import CLOCK
from workflows.runs.selectors.run import instance_lock
from workflows.runs.services.advance import instance_advance, started_input
from workflows.runs.services.start import has_run_slot
from workflows.runs.states import InstanceStatus

# Limits of one run of the scheduled task: runs started, and queued runs read per organization.
MOST_PER_TICK = 200
LOOK_AHEAD = 50
# A loose index scan: it jumps from organization to organization. A DISTINCT would read every queued run.
WAITING = """
WITH RECURSIVE tenant AS (
    (SELECT organization_id FROM workflows_workflowinstance WHERE state = 'queued' ORDER BY organization_id LIMIT 1)
    UNION ALL
    SELECT following.organization_id FROM tenant CROSS JOIN LATERAL (
        SELECT organization_id FROM workflows_workflowinstance
        WHERE state = 'queued' AND organization_id > tenant.organization_id ORDER BY organization_id LIMIT 1
    ) following
)
SELECT tenant.organization_id, organization.capacity_units, head.id,
    (SELECT count(*) FROM (SELECT 1 FROM workflows_workflowinstance running
        WHERE running.organization_id = tenant.organization_id AND running.state = 'running'
        LIMIT organization.max_concurrency) under_way)
FROM tenant JOIN governance_organization organization ON organization.id = tenant.organization_id
CROSS JOIN LATERAL (
    SELECT id FROM workflows_workflowinstance
    WHERE organization_id = tenant.organization_id AND state = 'queued' ORDER BY id LIMIT %s
) head
"""


class IntakeResult(Enum):
    STARTED = auto()
    FULL = auto()  # no free slot for this organization now
    PASSED_BY = auto()


def instances_dispatch(*, at: datetime, region: str) -> int:
    """Start what may start, and return how many that were."""
    lines: dict[UUID, list[UUID]] = {}
    shares: dict[UUID, Share] = {}
    with connection.cursor() as cursor:
        cursor.execute(WAITING, [LOOK_AHEAD])
        for organization_id, capacity, instance_id, under_way in cursor.fetchall():
            lines.setdefault(organization_id, []).append(instance_id)
            shares[organization_id] = Share(capacity, under_way)
    turns, count = FairRound(shares), 0
    while count < MOST_PER_TICK and (organization_id := turns.turn()) is not None:
        line = lines[organization_id]
        taken = _take_up(line.pop(0), at, region) if line else IntakeResult.FULL
        if taken is IntakeResult.STARTED:
            count += 1
            turns.served(organization_id)
        elif taken is IntakeResult.PASSED_BY:
            turns.waits(organization_id)
    return count


def _take_up(instance_id: UUID, at: datetime, region: str) -> IntakeResult:
    """A run that fails, or that is no longer queued, is passed by: the runs behind it must not wait for it."""
    taken = IntakeResult.PASSED_BY

    def handle(row: UUID) -> bool:
        nonlocal taken
        instance = instance_lock(instance_id=row)
        if instance.state != InstanceStatus.QUEUED:
            return False
        if not has_run_slot(organization=instance.organization):
            taken = IntakeResult.FULL
            return False
        instance_advance(instance=instance, logged=started_input(at), actor=CLOCK, at=at, region=region)
        return True

    return IntakeResult.STARTED if each_due([instance_id], handle, tick="instances_hand_out") else taken
