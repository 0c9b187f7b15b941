"""Tasks of this app: they take ids, hold no rule, and are safe twice, late, or never."""

from attempts.tasks import execution, notify, quarantine, review

__all__ = ["execution", "notify", "quarantine", "review"]
