"""The caller's own executor: it leases, acts and reports through the API. Holdpoint never calls it."""

from attempts.execution.adapters.base import AdapterCall, Outcome, failure


class ExternalAdapter:
    name = "external"
    effect = "none"
    retryable: tuple[str, ...] = ("what the executor reports as retryable",)

    def call(self, call: AdapterCall) -> Outcome:
        """A worker that got here has made a mistake, and nothing was sent."""
        return failure("executed_by_the_caller")
