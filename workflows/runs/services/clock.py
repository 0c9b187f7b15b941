"""Scheduled work on runs: step timeouts, workflow deadlines, due retries, and signals whose wake-up was lost."""

from collections.abc import Callable
from datetime import datetime
from uuid import UUID

from django.db import connection

from attempts.lifecycle.services.due import each_due
from reasoncodes.base.actors import CLOCK
from workflows.runs.models import WorkflowInstance, WorkflowStep
from workflows.runs.selectors.run import instance_lock
from workflows.runs.services.advance import deadline_passed_input, instance_advance, retry_due_input, timed_out_input
from workflows.runs.services.signal_follow import signal_follow

# Rows per run of a scheduled task; the rest is found by the next run.
BATCH = 200
# Each condition matches a partial index, which is read from its front: the cost does not grow with the runs that wait.
# statement_timestamp() is the database's clock, so that workers whose clocks differ agree on what is due.
STEP_TIMED_OUT = """state IN ('in_progress', 'waiting_approval') AND timeout_at <= statement_timestamp()"""
RETRY_DUE = """state = 'pending' AND next_eligible_at <= statement_timestamp()"""
DEADLINE_PASSED = """state IN ('queued', 'running', 'waiting_approval') AND deadline_at <= statement_timestamp()"""
STEPS, INSTANCES = "workflows_workflowstep", "workflows_workflowinstance"
DUE_SIGNALS = "SELECT id FROM workflows_nudge WHERE due_at <= statement_timestamp() ORDER BY due_at LIMIT %s"


def steps_time_out(*, at: datetime, region: str) -> int:
    def handle(step: UUID) -> bool:
        row, instance = _step(step)
        if row.timeout_at is None or not _still(STEPS, STEP_TIMED_OUT, step):
            return False
        logged = timed_out_input(row.id, row.timeout_at)
        instance_advance(instance=instance, logged=logged, actor=CLOCK, at=at, region=region)
        return True

    return _each(_due(STEPS, STEP_TIMED_OUT, "timeout_at"), handle, tick="steps_time_out")


def step_retries_due(*, at: datetime, region: str) -> int:
    def handle(step: UUID) -> bool:
        row, instance = _step(step)
        if row.next_eligible_at is None or not _still(STEPS, RETRY_DUE, step):
            return False
        # The database's clock says it is due. This machine's clock may be behind, and the engine would call it early.
        logged = retry_due_input(row.id, max(at, row.next_eligible_at))
        instance_advance(instance=instance, logged=logged, actor=CLOCK, at=at, region=region)
        return True

    return _each(_due(STEPS, RETRY_DUE, "next_eligible_at"), handle, tick="step_retries_due")


def deadlines_pass(*, at: datetime, region: str) -> int:
    def handle(instance_id: UUID) -> bool:
        instance = instance_lock(instance_id=instance_id)
        if not _still(INSTANCES, DEADLINE_PASSED, instance_id):
            return False
        logged = deadline_passed_input(instance.deadline_at)
        instance_advance(instance=instance, logged=logged, actor=CLOCK, at=at, region=region)
        return True

    return _each(_due(INSTANCES, DEADLINE_PASSED, "deadline_at"), handle, tick="deadlines_pass")


def signals_due(*, at: datetime, region: str) -> int:
    """Follow signals whose wake-up was lost."""
    return _each(DUE_SIGNALS, lambda row: signal_follow(signal_id=row, at=at, region=region), tick="nudges_due")


def _step(step: UUID) -> tuple[WorkflowStep, WorkflowInstance]:
    """Lock the run first, then read the step: what was read before the lock may be outdated."""
    instance_id = WorkflowStep.objects.values_list("instance_id", flat=True).get(id=step)
    instance = instance_lock(instance_id=instance_id)
    return WorkflowStep.objects.get(id=step), instance


def _due(table: str, condition: str, column: str) -> str:
    return f"SELECT id FROM {table} WHERE {condition} ORDER BY {column} LIMIT %s"  # noqa: S608


def _still(table: str, condition: str, row: UUID) -> bool:
    """Check again under the lock: another worker, or the awaited event, may have advanced the run meanwhile."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT 1 FROM {table} WHERE id = %s AND {condition}", [row])  # noqa: S608
        return cursor.fetchone() is not None


def _each(sql: str, handle: Callable[[UUID], bool], *, tick: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(sql, [BATCH])
        ids = [row[0] for row in cursor.fetchall()]
    return each_due(ids, handle, tick=tick)
