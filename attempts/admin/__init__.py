"""The operator console's pages of this app."""

from attempts.admin import attempts, idempotency, notify, quarantine, reviews

__all__ = ["attempts", "idempotency", "notify", "quarantine", "reviews"]
