"""Stands for the caller's own executor, which leases and reports through the API. Holdpoint never calls it."""

from attempts.execution.adapters.base import AdapterCall, Outcome, failure


class ExternalAdapter:
    name = "external"
    effect = "none"
    retryable: tuple[str, ...] = ("what the executor reports as retryable",)

    def receiver(self, route: str) -> str:
        return ""

    def call(self, call: AdapterCall) -> Outcome:
        """Not reached, because workers do not lease such attempts. Nothing is sent."""
        return failure("executed_by_the_caller")
