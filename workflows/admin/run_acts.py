"""The five interventions as pages: what will happen, why it is done, and a button that is posted."""

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.utils import timezone

from governance.admin.base import Act, ConsoleAdmin, console_actor
from governance.admin.forms import ReasonForm
from reasoncodes.codes import Scope
from reasoncodes.selectors import reason_code_list
from workflows.admin.run_words import consequence, possible
from workflows.models import WorkflowInstance
from workflows.services.act import instance_act
from workflows.services.intervene import Order
from workflows.states import InterventionAction

A = InterventionAction


class InterventionForm(ReasonForm):
    """Halting may also name a halt reason: what a module would have said."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field: Any = self.fields["reason_code"]
        known = {code for code, _ in field.choices}
        rows = reason_code_list(organization_ids=[self.obj.organization_id], scope=Scope.HALT, active=True)
        halts = {row.code: f"{row.label} ({row.code})" for row in rows.order_by("-organization_id")}
        more = sorted((item for item in halts.items() if item[0] not in known), key=lambda item: item[1])
        field.choices = [*field.choices, ("Reasons for a halt", more)]


def perform(action: InterventionAction, said: str) -> Callable[..., str]:
    def do(model_admin: ConsoleAdmin, request: HttpRequest, obj: WorkflowInstance, data: dict[str, Any]) -> str:
        order = Order(action, data["reason_code"], data["note"])
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
        InterventionForm if action is A.HALT else ReasonForm,
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
