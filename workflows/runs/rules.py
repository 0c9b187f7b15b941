"""The ledger actions of this app, with their wording for people; and event types of the log with a meaning of their
own. They are stored, so they never change."""

REQUESTED = "run.requested"
MIGRATED = "instance.migrated"
STARTS = frozenset({"case.created", REQUESTED, "instance.started"})
# What a person ordered, and the action of its ledger entry.
ORDERED = {"instance.intervened": "workflow.intervened", MIGRATED: "workflow.migrated"}

ACTIONS: dict[str, str] = {
    "workflow.queued": "queued a workflow run until a slot is free",
    "workflow.started": "started a workflow run",
    "workflow.advanced": "advanced a workflow run",
    "workflow.halted": "halted a workflow run",
    "workflow.completed": "completed a workflow run",
    "workflow.cancelled": "cancelled a workflow run",
    "workflow.intervened": "intervened in a workflow run",
    "workflow.migrated": "moved a workflow run to another version of its definition",
    "workflow.event_redriven": "processed an unmatched event again",
    "workflow.outgoing_redriven": "ordered a parked outgoing event to be published again",
    "workflow.message_redriven": "processed a parked stream message again",
    "workflow.message_dismissed": "dismissed a parked stream message",
    "workflow.bulk_ordered": "ordered the same intervention for many runs",
    "definition.created": "drafted a workflow definition",
    "definition.cloned": "cloned a workflow definition",
    "definition.changed": "changed a definition's draft",
    "definition.published": "published a workflow definition",
    "definition.restored": "put the version before a bad one in force again",
    "definition.archived": "archived a workflow definition",
    "module.registered": "registered a module",
    "module.changed": "changed a module",
    "module.disabled": "disabled a module",
    "module.enabled": "enabled a module",
    "module.checked": "checked a module with the conformance kit",
    "module.secret_rotated": "gave a module a new secret",
    "webhook_endpoint.created": "added a webhook endpoint",
    "webhook_endpoint.changed": "changed a webhook endpoint",
    "webhook_endpoint.enabled": "enabled a webhook endpoint",
    "webhook_endpoint.disabled": "disabled a webhook endpoint",
    "webhook_endpoint.removed": "removed a webhook endpoint",
    "webhook_endpoint.secret_rotated": "gave a webhook endpoint a new secret",
    "webhook_endpoint.tested": "sent a test to a webhook endpoint",
    "webhook_endpoint.redelivered": "ordered the failed webhooks of an endpoint to be sent again",
    "webhook_delivery.redelivered": "ordered a webhook to be sent again",
}
