"""Prometheus metrics of this app, with the names of S4 8.3, and the counting and telling of an advance."""

# Labels are slugs and codes of ours. A caller's text as a label would put content into the metrics and make their
# number unbounded.

from typing import Any

import structlog
from django.db import transaction
from prometheus_client import Counter, Histogram

from workflows.engine.state import Run
from workflows.runs.models import WorkflowInstance
from workflows.runs.states import ENDED, InstanceStatus, StepStatus

log = structlog.get_logger("holdpoint.engine")
STARTED = Counter("workflow_instance_started_total", "Instances started.", ["org", "product", "definition", "mode"])
ENDED_TOTAL = Counter("workflow_instance_completed_total", "Instances that ended.", ["org", "terminal_state"])
STEP_SECONDS = Histogram(
    "workflow_step_duration_seconds",
    "From a step's start to its end.",
    ["kind"],
    buckets=(0.01, 0.05, 0.1, 0.5, 1, 5, 15, 60, 300, 900, 3600, 14400, 86400, 604800),
)
HALTS = Counter("workflow_halt_total", "Instances that halted.", ["reason_code"])
INTERVENTIONS = Counter("workflow_intervention_total", "What people did to instances.", ["action"])
EVENTS = Counter("workflow_events_total", "Inbound events by what they did.", ["outcome"])
MESSAGES = Counter("holdpoint_stream_messages_total", "Messages of the inbound streams.", ["event_type", "fate"])
MESSAGE_SECONDS = Histogram(
    "holdpoint_stream_message_seconds",
    "From a message's place in its stream to the end of taking it in.",
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15, 60, 300, 3600),
)
DRIFT = Counter("workflow_drift_total", "Client-driven instances that left their definition's order.", ["drift"])
WEBHOOKS = Counter("holdpoint_webhook_tries_total", "Tries to deliver a webhook, by what came of them.", ["outcome"])
WEBHOOK_SECONDS = Histogram(
    "holdpoint_webhook_seconds",
    "How long a receiver of webhooks took.",
    buckets=(0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15),
)


def count_run(instance: WorkflowInstance, run: Run, *, old_state: str) -> None:
    # After the commit: an advance that is rolled back must not be counted. Its line names what lines say now.
    ids = structlog.contextvars.get_contextvars()
    transaction.on_commit(lambda: _count(instance, run, old_state, ids))


def _count(instance: WorkflowInstance, run: Run, old_state: str, ids: dict[str, Any]) -> None:
    if instance.state != old_state:
        log.info("instance_moved", **ids | {"was": str(old_state), "state": str(instance.state)})
    EVENTS.labels(run.outcome.value).inc()
    if run.drift:
        DRIFT.labels(run.drift.value).inc()
    state = instance.state
    org = instance.organization.slug
    if old_state == InstanceStatus.QUEUED and state not in {old_state, InstanceStatus.CANCELLED}:
        product = instance.product.slug if instance.product else ""
        STARTED.labels(org, product, instance.definition.slug, instance.mode).inc()
    if state != old_state and state in ENDED:
        ENDED_TOTAL.labels(org, state).inc()
    if state != old_state and state == InstanceStatus.HALTED:
        HALTS.labels(instance.halt_reason).inc()
    for step in run.state.steps:
        done = step.state == StepStatus.COMPLETED and f"{step.place} completed {step.outcome}" in run.path
        if done and step.started_at and step.completed_at:
            STEP_SECONDS.labels(step.kind).observe((step.completed_at - step.started_at).total_seconds())
