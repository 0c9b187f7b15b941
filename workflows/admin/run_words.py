"""What an intervention will do to this run, and what comes next for it, said before anybody presses a button."""

from typing import Any

from workflows.engine.interventions import GOES_ON, why_not
from workflows.kinds.registry import kind
from workflows.models import WorkflowInstance, WorkflowStep
from workflows.selectors.instance import current_step
from workflows.states import InterventionAction, Mode, StepStatus

ACTION_NAMES = {
    "resume": "Resume",
    "retry_step": "Retry the step",
    "halt": "Halt",
    "supersede": "Supersede",
    "cancel": "Cancel the runs",
}
HINTS = {
    "call_module": "The client has to call {module} ({endpoint}). The run continues with {completion_event}.",
    "await_module": "Waits for {module}. The run continues with {completion_event}.",
    "await_review": "Waits for a person in the review queue.",
    "await_release": "Held: a person has to release the request, or a slot has to become free.",
    "await_retry": "Waits for its retry. It starts when it is due, or an operator can start it now.",
    "await_start": "Queued until its organization has a free slot for another run.",
    "intervene": "Halted. An operator has to resume, retry, supersede or cancel it.",
}


def hint(advice: dict[str, Any]) -> str:
    action = advice["next_action"]
    return HINTS[action["type"]].format(**action) if action else "The run has ended. Nothing more happens."


def open_step(instance: WorkflowInstance) -> WorkflowStep | None:
    """Asked once per page, however many buttons ask."""
    if "open_step" not in instance.__dict__:
        instance.__dict__["open_step"] = current_step(instance_id=instance.id)
    found: WorkflowStep | None = instance.__dict__["open_step"]
    return found


def possible(instance: WorkflowInstance, action: InterventionAction, at: Any) -> bool:
    step = open_step(instance) if action in GOES_ON else None
    under_way = step.step_id if step and step.status != StepStatus.PENDING else ""
    return not why_not(action, status=instance.status, overdue=instance.deadline_at <= at, under_way=under_way)


def consequence(instance: WorkflowInstance, action: InterventionAction) -> str:
    """Beside the general explanation: what happens to the step that is open now."""
    step = open_step(instance)
    if action in GOES_ON:
        again = step.step_id if step else instance.resume_step_id
        return f"{again} starts now, with a new correlation id." if again else "The run starts with its first step."
    return _stopped(instance, step) if step else "No step is in progress."


def _stopped(instance: WorkflowInstance, step: WorkflowStep) -> str:
    known = kind(step.step_kind)
    governed = known is not None and known.is_governed and instance.mode == Mode.ACTIVE
    if governed and step.status == StepStatus.IN_PROGRESS:
        return (
            f"{step.step_id} was requested and has not answered. Its attempt ends with an unknown outcome and goes to "
            "quarantine, where a person has to find out what happened."
        )
    if step.status == StepStatus.WAITING_APPROVAL:
        return f"{step.step_id} waits for a person. That review ends without a decision."
    return f"{step.step_id} is stopped. A later answer is kept, marked as late, and changes nothing."
