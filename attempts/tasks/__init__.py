"""Tasks of this app: they take ids, hold no rule, and are safe twice, late, or never."""

from attempts.tasks import execution, quarantine, review

__all__ = ["execution", "quarantine", "review"]
