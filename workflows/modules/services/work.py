"""Sends due calls in fair turns, with the places, shares and circuits that attempts have."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from uuid import UUID

from django.db import connection

from attempts.execution.adapters.http import receiver_of
from attempts.execution.services.work import Places, due_work
from attempts.receivers.selectors import Receiver
from workflows.modules.services.calls import CALLS_TASK, module_call_execute

CONNECTOR = "module"
# The oldest waiting calls of each module: one that hangs must not hide the others.
CALL_HEADS = """
SELECT head.id, module.organization_id, organization.capacity_units, version.url,
    extract(epoch FROM statement_timestamp() - head.created_at)::float8
FROM workflows_module module JOIN governance_organization organization ON organization.id = module.organization_id
JOIN workflows_moduleversion version ON version.module_id = module.id AND version.number = module.version
CROSS JOIN LATERAL (
    SELECT id, created_at FROM workflows_modulecall
    WHERE module_id = module.id AND state = 'waiting' AND id <> ALL(%(taken)s) ORDER BY id LIMIT %(each)s
) head
"""


@dataclass(frozen=True, slots=True)
class DueCall:
    """`attempt_id` is the call's id: the name that places know."""

    attempt_id: UUID
    organization_id: UUID
    weight: int
    url: str
    waited: float
    trace_id: str = ""

    @property
    def receiver(self) -> Receiver:
        return Receiver(self.organization_id, CONNECTOR, receiver_of(self.url)[:200])


def call_heads(taken: list[UUID]) -> list[DueCall]:
    with connection.cursor() as cursor:
        cursor.execute(CALL_HEADS, {"taken": taken, "each": 2})
        return [DueCall(*row) for row in cursor.fetchall()]


@cache
def call_places(size: int) -> Places:
    """One for all threads of this process."""
    return Places(size, heads=call_heads)


def module_calls_work(*, now: Callable[[], datetime], places: Places) -> int:
    """Sends due calls until none is left that may be sent, and returns how many were sent."""
    return due_work(now=now, places=places, task=CALLS_TASK, execute=module_call_execute)
