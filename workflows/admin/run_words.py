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
    "call_module": "The client's turn: it calls {module} ({endpoint}); {completion_event} takes the run further.",
    "await_module": "Waits for {module}: {completion_event} takes the run further.",
    "await_review": "Waits for a person in the review queue.",
    "await_release": "Held: a person has to release the request, or a place in a cap has to become free.",
    "await_retry": "Waits for its retry; the clock starts it, or an operator does now.",
    "await_start": "Queued until its organization has room for another run.",
    "intervene": "Halted: it goes on only when an operator resumes, retries, supersedes or cancels it.",
}


def hint(advice: dict[str, Any]) -> str:
    action = advice["next_action"]
    return HINTS[action["type"]].format(**action) if action else "It has ended; nothing follows."


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
        return f"{again} is started now, with a new correlation id." if again else "It starts with its first step."
    return _stopped(instance, step) if step else "No step is under way."


def _stopped(instance: WorkflowInstance, step: WorkflowStep) -> str:
    known = kind(step.step_kind)
    governed = known is not None and known.is_governed and instance.mode == Mode.ACTIVE
    if governed and step.status == StepStatus.IN_PROGRESS:
        return (
            f"{step.step_id} was requested and has not answered: its attempt ends with an unknown outcome and goes to "
            "quarantine, for a person to find out."
        )
    if step.status == StepStatus.WAITING_APPROVAL:
        return f"{step.step_id} waits for a person: that review ends without a decision."
    return f"{step.step_id} is stopped; an answer that still comes is kept as late and changes nothing."
