"""Django looks for the tables of an app here. Import each one from the room it belongs to."""

from workflows.definitions import models as definitions
from workflows.events import models as events
from workflows.runs import models as runs
from workflows.webhooks import models as webhooks

__all__ = ["definitions", "events", "runs", "webhooks"]
