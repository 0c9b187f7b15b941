"""The ledger actions of this app, with their wording for people."""

ACTIONS: dict[str, str] = {
    "workflow.queued": "queued a workflow run until there is room",
    "workflow.started": "started a workflow run",
    "workflow.advanced": "took a workflow run further",
    "workflow.halted": "halted a workflow run",
    "workflow.completed": "completed a workflow run",
    "workflow.cancelled": "cancelled a workflow run",
    "workflow.intervened": "intervened in a workflow run",
    "workflow.event_redriven": "drove a kept event again",
    "workflow.outgoing_redriven": "had a parked outgoing event published again",
    "workflow.message_redriven": "drove a parked message of a stream again",
    "workflow.message_dismissed": "dismissed a parked message of a stream",
    "workflow.bulk_ordered": "ordered the same intervention for many runs",
    "definition.created": "drafted a workflow definition",
    "definition.cloned": "cloned a workflow definition",
    "definition.changed": "changed a definition's draft",
    "definition.published": "published a workflow definition",
    "definition.archived": "archived a workflow definition",
}
