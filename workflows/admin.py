"""Django looks for the console pages of an app here. Each is defined in its room."""

from workflows.definitions.admin import definitions as definitions_definitions
from workflows.events import admin as events
from workflows.modules import admin as modules
from workflows.runs.admin import bulk as runs_bulk
from workflows.runs.admin import runs as runs_runs
from workflows.webhooks import admin as webhooks

__all__ = ["definitions_definitions", "events", "modules", "runs_bulk", "runs_runs", "webhooks"]
