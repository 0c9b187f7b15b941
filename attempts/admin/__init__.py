"""The operator console's pages of this app."""

from attempts.admin import attempts, idempotency, quarantine, reviews

__all__ = ["attempts", "idempotency", "quarantine", "reviews"]
