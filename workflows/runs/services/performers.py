"""What Holdpoint does itself for a step, by kind: after the advance is written, in its transaction. A performer reports
by a signal when it is done, at once or later; `signal_performed` writes it."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from workflows.runs.models import WorkflowInstance, WorkflowStep

# (run, step, what the kind prepared, at)
Performer = Callable[[WorkflowInstance, WorkflowStep, dict[str, Any], datetime], None]
_PERFORMERS: dict[str, Performer] = {}


def performer_register(kind: str, performer: Performer) -> None:
    _PERFORMERS[kind] = performer


def perform(kind: str, instance: WorkflowInstance, step: WorkflowStep, payload: dict[str, Any], at: datetime) -> None:
    """Raises for a kind that nobody performs: the step would wait for ever."""
    _PERFORMERS[kind](instance, step, payload, at)
