"""Django looks for the models of an app here. Code imports each one from the folder it belongs to."""

from workflows.definitions import models as definitions
from workflows.events import models as events
from workflows.modules import models as modules
from workflows.runs import models as runs
from workflows.webhooks import models as webhooks

__all__ = ["definitions", "events", "modules", "runs", "webhooks"]
