"""The operator console's pages of this app."""

from workflows.admin import bulk, definitions, kept_events, outbox, parked, runs, webhooks

__all__ = ["bulk", "definitions", "kept_events", "outbox", "parked", "runs", "webhooks"]
