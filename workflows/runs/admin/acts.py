"""The five interventions as pages: what will happen, the reason, and the form."""

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.utils import timezone

from governance.console.admin.base import Act, ConsoleAdmin, console_actor
from governance.console.admin.forms import ReasonForm
from reasoncodes.codes import Scope
from reasoncodes.selectors import reason_code_list
from workflows.definitions.states import Mode
from workflows.engine.interventions import GOES_ON, why_not
from workflows.runs.models import WorkflowInstance, WorkflowStep
from workflows.runs.selectors.locked import kind_of
from workflows.runs.selectors.run import current_step
from workflows.runs.services.intervene import InterventionOrder, instance_act
from workflows.runs.states import InterventionAction, StepStatus

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
    "await_time": "Waits until a moment. An operator can let it go on now.",
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
    under_way = step.step_id if step and step.state != StepStatus.PENDING else ""
    return not why_not(action, state=instance.state, overdue=instance.deadline_at <= at, under_way=under_way)


def consequence(instance: WorkflowInstance, action: InterventionAction) -> str:
    """Beside the general explanation: what happens to the step that is open now."""
    step = open_step(instance)
    if action in GOES_ON:
        again = step.step_id if step else instance.resume_step_id
        return f"{again} starts now, with a new correlation id." if again else "The run starts with its first step."
    return _stopped(instance, step) if step else "No step is in progress."


def _stopped(instance: WorkflowInstance, step: WorkflowStep) -> str:
    known = kind_of(instance, step.step_id)
    governed = known is not None and known.is_governed and instance.mode == Mode.ACTIVE
    if governed and step.state == StepStatus.IN_PROGRESS:
        return (
            f"{step.step_id} was requested and has not answered. Its attempt ends with an unknown outcome and goes to "
            "quarantine, where a person has to find out what happened."
        )
    if step.state == StepStatus.WAITING_APPROVAL:
        return f"{step.step_id} waits for a person. That review ends without a decision."
    return f"{step.step_id} is stopped. A later answer is kept, marked as late, and changes nothing."


A = InterventionAction


class HaltForm(ReasonForm):
    """A halt takes a code of scope halt: what people say, and after it what the program or a module would have said."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field: Any = self.fields["reason_code"]
        rows = reason_code_list(organization_ids=[self.obj.organization_id], scope=Scope.HALT, active=True)
        said: dict[bool, dict[str, str]] = {False: {}, True: {}}
        for row in rows.order_by("-organization_id"):  # the organization's own row comes last and wins
            said[row.emitted][row.code] = f"{row.label} ({row.code})" + (", needs a note" if row.requires_note else "")
        by_people, by_program = (sorted(said[one].items(), key=lambda item: item[1]) for one in (False, True))
        field.choices = [("", "Choose a reason"), *by_people, ("Reasons for a halt", by_program)]


def perform(action: InterventionAction, said: str) -> Callable[..., str]:
    def do(model_admin: ConsoleAdmin, request: HttpRequest, obj: WorkflowInstance, data: dict[str, Any]) -> str:
        order = InterventionOrder(action, data["reason_code"], data["note"])
        acted = instance_act(
            instance_id=obj.id,
            order=order,
            actor=console_actor(request),
            at=timezone.now(),
            region=settings.DEPLOYMENT_REGION,
        )
        return said + (f" The new run is {acted.successor.id}." if acted.successor else "")

    return do


def act(
    action: InterventionAction, title: str, explanation: str, said: str, *, danger: bool = False, button: str = ""
) -> Act:
    return Act(
        action.value.replace("_", "-"),
        title,
        explanation,
        perform(action, said),
        HaltForm if action is A.HALT else ReasonForm,
        available=lambda obj: possible(obj, action, timezone.now()),
        context=lambda request, obj: {"warning": consequence(obj, action)},
        danger=danger,
        button=button,
    )


ACTS = [
    act(
        A.RESUME,
        "Resume",
        "The run continues with the step at which it stopped. The workflow's deadline does not change.",
        "Resumed.",
    ),
    act(
        A.RETRY_STEP,
        "Retry the step",
        "Starts the step again, with a new request and a new correlation id. Answers to earlier requests are stale.",
        "The step was started again.",
    ),
    act(
        A.HALT,
        "Halt",
        "Pauses the run. Nothing more is sent. Holdpoint keeps what modules still report, marked as late.",
        "Halted. Later reports are kept and change nothing.",
    ),
    act(
        A.SUPERSEDE,
        "Supersede",
        "Ends this run and starts the case again from its first step, with the latest active definition.",
        "Superseded.",
        danger=True,
    ),
    act(
        A.CANCEL,
        "Cancel the run",
        "Ends the run for good. You cannot resume it, and its case has no other run.",
        "Cancelled.",
        danger=True,
        button="End it for good",
    ),
]
