"""One concept per file."""

from workflows.models.definition import WorkflowDefinition, WorkflowDefinitionRevision
from workflows.models.event import Nudge, OutboxEvent, WorkflowEvent
from workflows.models.instance import WorkflowInstance, WorkflowInstanceCurrentStep, WorkflowStep
from workflows.models.intervention import BulkIntervention, BulkItem, WorkflowIntervention
from workflows.models.parked import ParkedMessage
from workflows.models.webhook import WebhookAttempt, WebhookCursor, WebhookDelivery, WebhookEndpoint, WebhookSecret

__all__ = [
    "BulkIntervention",
    "BulkItem",
    "Nudge",
    "OutboxEvent",
    "ParkedMessage",
    "WebhookAttempt",
    "WebhookCursor",
    "WebhookDelivery",
    "WebhookEndpoint",
    "WebhookSecret",
    "WorkflowDefinition",
    "WorkflowDefinitionRevision",
    "WorkflowEvent",
    "WorkflowInstance",
    "WorkflowInstanceCurrentStep",
    "WorkflowIntervention",
    "WorkflowStep",
]
