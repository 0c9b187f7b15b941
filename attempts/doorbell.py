"""The bell, and the name of the task that executes an attempt."""

from governance.doorbell import heard, ring, ring_once

__all__ = ["DISPATCH", "heard", "ring", "ring_once"]

DISPATCH = "attempts.tasks.execution.attempt_dispatch"
