"""The events that belong to no step kind: what starts a workflow, and what is told about its life (S4 4.3, 6.6)."""

from workflows.kinds.base import EventType
from workflows.kinds.shapes import CODE, MOMENT, REFERENCE, UUID, array, closed
from workflows.states import InterventionAction, Mode

_MODE = {"enum": [mode.value for mode in Mode]}

CASE_CREATED = EventType(
    name="case.created",
    direction="in",
    description="A case exists. If its organization and product have an active definition, an instance starts.",
    schema=closed(
        {"patient_id": REFERENCE, "orchestration_mode": _MODE, "image_ids": array(UUID)},
        optional=("orchestration_mode", "image_ids"),
    ),
)
STARTED = EventType(
    name="workflow.started",
    direction="out",
    description="An instance began.",
    schema=closed({"instance_id": UUID, "definition_id": UUID, "mode": _MODE}),
)
HALTED = EventType(
    name="workflow.halted",
    direction="out",
    description="An instance stopped with a reason. A person may take it further.",
    schema=closed(
        {
            "instance_id": UUID,
            "halt_step_id": CODE,
            "reason_code": CODE,
            "reason_note": {"type": "string", "maxLength": 280},
        },
        optional=("halt_step_id", "reason_note"),
    ),
)
COMPLETED = EventType(
    name="workflow.completed",
    direction="out",
    description="An instance reached its good end.",
    schema=closed({"instance_id": UUID, "completed_at": MOMENT}),
)
CANCELLED = EventType(
    name="workflow.cancelled",
    direction="out",
    description="A person ended an instance for good; `reason` is a code, or superseded_by:<instance>.",
    schema=closed({"instance_id": UUID, "cancelled_by": REFERENCE, "reason": REFERENCE}, optional=("reason",)),
)
INTERVENED = EventType(
    name="workflow.intervened",
    direction="out",
    description="A person acted on an instance.",
    schema=closed(
        {
            "instance_id": UUID,
            "action": {"enum": [action.value for action in InterventionAction]},
            "performed_by": REFERENCE,
            "reason_code": CODE,
            "step_id": CODE,
        },
        optional=("step_id",),
    ),
)
LIFECYCLE: tuple[EventType, ...] = (CASE_CREATED, STARTED, HALTED, COMPLETED, CANCELLED, INTERVENED)
