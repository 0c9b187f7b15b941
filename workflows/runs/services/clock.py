"""Scheduled work on runs: step timeouts, workflow deadlines, due retries, and signals whose wake-up was lost. What is
over by its row may still have time: outages and late publication do not count."""

from collections.abc import Callable
from datetime import datetime
from uuid import UUID

from django.db import connection

from attempts.lifecycle.services.due import each_due
from attempts.reviews.selectors.reviews import database_now
from reasoncodes.base.actors import CLOCK
from workflows.runs.models import WorkflowInstance, WorkflowStep
from workflows.runs.selectors.run import instance_lock
from workflows.runs.selectors.times import run_deadline, step_timeout
from workflows.runs.services.advance import (
    LoggedInput,
    deadline_passed_input,
    instance_advance,
    overdue_input,
    postponed_input,
    retry_due_input,
    timed_out_input,
)
from workflows.runs.services.signal_follow import signal_follow

# Rows per run of a scheduled task; the rest is found by the next run.
BATCH = 200
# Each condition matches a partial index, which is read from its front: the cost does not grow with the runs that wait.
# statement_timestamp() is the database's clock, so that workers whose clocks differ agree on what is due.
STEP_TIMED_OUT = """state IN ('in_progress', 'waiting_approval') AND timeout_at <= statement_timestamp()"""
RETRY_DUE = """state = 'pending' AND next_eligible_at <= statement_timestamp()"""
STEP_OVERDUE = """state IN ('in_progress', 'pending', 'waiting_approval') AND NOT overdue
    AND due_at <= statement_timestamp()"""
DEADLINE_PASSED = """state IN ('queued', 'running', 'waiting_approval') AND deadline_at <= statement_timestamp()"""
STEPS, INSTANCES = "workflows_workflowstep", "workflows_workflowinstance"
DUE_SIGNALS = "SELECT id FROM workflows_nudge WHERE due_at <= statement_timestamp() ORDER BY due_at LIMIT %s"


def steps_time_out(*, at: datetime, region: str) -> int:
    def handle(step: UUID) -> bool:
        row, instance = _step(step)
        if row.timeout_at is None or not _still(STEPS, STEP_TIMED_OUT, step):
            return False
        instance_advance(instance=instance, logged=_over(row, instance), actor=CLOCK, at=at, region=region)
        return True

    return _each(_due(STEPS, STEP_TIMED_OUT, "timeout_at"), handle, tick="steps_time_out")


def steps_overdue(*, at: datetime, region: str) -> int:
    """Marks steps that should have been done by now. They go on."""

    def handle(step: UUID) -> bool:
        row, instance = _step(step)
        if row.due_at is None or not _still(STEPS, STEP_OVERDUE, step):
            return False
        logged = overdue_input(row.id, max(at, row.due_at))
        instance_advance(instance=instance, logged=logged, actor=CLOCK, at=at, region=region)
        return True

    return _each(_due(STEPS, STEP_OVERDUE, "due_at"), handle, tick="steps_time_out")


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
        logged = _deadline_over(instance, database_now())
        instance_advance(instance=instance, logged=logged, actor=CLOCK, at=at, region=region)
        return True

    return _each(_due(INSTANCES, DEADLINE_PASSED, "deadline_at"), handle, tick="deadlines_pass")


def signals_due(*, at: datetime, region: str) -> int:
    """Follow signals whose wake-up was lost."""
    return _each(DUE_SIGNALS, lambda row: signal_follow(signal_id=row, at=at, region=region), tick="nudges_due")


def _over(row: WorkflowStep, instance: WorkflowInstance) -> LoggedInput:
    """The end of the step's time, or that it lasts longer. Row and run are locked, and the stored time is over."""
    now, stored = database_now(), row.timeout_at
    if stored is None:
        raise ValueError("a step without a timeout is not over")
    # The run first: if both are over, the result must not depend on which scheduled task came first.
    if instance.deadline_at <= now:
        return _deadline_over(instance, now)
    fair = step_timeout(step=row, instance=instance, now=now)
    return postponed_input(stored, fair, row.id) if fair > now else timed_out_input(row.id, max(fair, stored))


def _deadline_over(instance: WorkflowInstance, now: datetime) -> LoggedInput:
    fair = run_deadline(instance=instance, now=now)
    if fair > now:
        return postponed_input(instance.deadline_at, fair)
    return deadline_passed_input(max(fair, instance.deadline_at))


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
