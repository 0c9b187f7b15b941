"""The bell, and the name of the task that executes an attempt."""

from governance.doorbell import ring, ring_once

__all__ = ["DISPATCH", "ring", "ring_once"]

DISPATCH = "attempts.tasks.execution.attempt_dispatch"
