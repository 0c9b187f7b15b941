"""What a case began with: its trigger, also for a run that took the place of another. Reads only."""

from typing import Any
from uuid import UUID

from workflows.models import WorkflowEvent, WorkflowInstance


def origin_of(instance: WorkflowInstance) -> dict[str, Any]:
    """The envelope of the event that began the case, from the log of its first run."""
    envelope = _first(instance.id)
    while "supersedes" in envelope:
        envelope = _first(UUID(envelope["supersedes"]))
    return envelope


def root_context(envelope: dict[str, Any], *, definition_id: UUID, instance_id: UUID) -> dict[str, Any]:
    """What the context of a run holds before its first step."""
    payload = envelope["payload"]
    root = {name: envelope[name] for name in ("case_id", "org_id", "product_id")}
    root |= {"definition_id": str(definition_id), "instance_id": str(instance_id)}
    return root | {name: payload[name] for name in ("patient_id", "image_ids") if name in payload}


def _first(instance_id: UUID) -> dict[str, Any]:
    envelope: dict[str, Any] = WorkflowEvent.objects.values_list("envelope", flat=True).get(
        instance_id=instance_id, number=1
    )
    return envelope
