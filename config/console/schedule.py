"""The console's page of the clock: every built-in scheduled task, when it ran, and whether somebody changed it. It only
reads. A second page proposes another interval; another person confirms it. Nothing else about a task can be changed."""

from typing import Any

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_safe
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from governance.authority.admin import waits_for_second
from governance.authority.services.changes import authority_act
from governance.console.admin.base import console_actor
from governance.console.admin.forms import NOTE_LENGTH
from governance.people.rules.roles import VIEW
from governance.schedule.hooks import scheduled_tasks
from governance.schedule.selectors import TaskStanding, foreign_tasks, schedule_standing
from governance.tenancy.models import Organization
from governance.tenancy.selectors import organization_at_home
from reasoncodes.base.errors import DomainError


class IntervalForm(forms.Form):
    task = forms.ChoiceField(widget=UnfoldAdminSelectWidget)
    seconds = forms.IntegerField(
        min_value=1,
        widget=UnfoldAdminTextInputWidget,
        help_text="How often it runs: from a tenth to ten times the built-in interval, at most an hour.",
    )
    note = forms.CharField(
        required=False,
        max_length=NOTE_LENGTH,
        widget=UnfoldAdminTextInputWidget,
        help_text="Why. The second person reads it. No names, patient data or secrets: Holdpoint checks the text.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field: Any = self.fields["task"]
        field.choices = [
            (name, f"{name}: {one.words} (from {one.shortest} to {one.longest} s)")
            for name, one in scheduled_tasks().items()
        ]


def may_see_schedule(request: HttpRequest) -> bool:
    """Everybody who sees anything in the console: people wait for what the clock does."""
    return request.user.is_superuser or bool(console_actor(request, permission=VIEW).organization_ids)


@require_safe
def schedule(request: HttpRequest) -> HttpResponse:
    if not may_see_schedule(request):
        raise PermissionDenied
    now = timezone.now()
    standing = schedule_standing(at=now, grace=settings.BEAT_HEARTBEAT_LIMIT_SECONDS)
    context: dict[str, Any] = {
        **admin.site.each_context(request),
        "title": "Schedule",
        "now": now,
        "tasks": [(one, *_state(one)) for one in standing],
        "troubles": [one for one in standing if one.trouble],
        # Their names are free text of whoever added them, so only an administrator reads them.
        "foreign": foreign_tasks(),
        "proposes": _home_of(request) is not None,
    }
    return render(request, "admin/console/schedule.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def schedule_propose(request: HttpRequest) -> HttpResponse:
    """Proposes another interval, for operators of the organization that runs the installation."""
    home = _home_of(request)
    if home is None:
        raise PermissionDenied
    form, status = IntervalForm(request.POST if request.method == "POST" else None), 200
    refusal: DomainError | None = None
    if request.method == "POST" and form.is_valid():
        try:
            return _propose(request, home, form.cleaned_data)
        except DomainError as error:
            refusal, status = error, error.status
            form.add_error(None, error.detail)
    context = {
        **admin.site.each_context(request),
        "title": "Propose another interval",
        "form": form,
        "problems": refusal.errors if refusal else (),
        "back": reverse("console_schedule"),
    }
    return render(request, "admin/console/schedule_propose.html", context, status=status)


def _propose(request: HttpRequest, home: Organization, data: dict[str, Any]) -> HttpResponse:
    outcome = authority_act(
        actor=console_actor(request),
        at=timezone.now(),
        organization=home,
        kind="schedule.change",
        subject=data["task"],
        details={"seconds": data["seconds"]},
        note=data["note"],
    )
    if outcome.applied is None:
        return waits_for_second(request, outcome)
    messages.success(request, f"{data['task']} now runs every {data['seconds']} s.")
    return HttpResponseRedirect(reverse("console_schedule"))


def _home_of(request: HttpRequest) -> Organization | None:
    """The organization that runs the installation, if the person operates it."""
    home = organization_at_home()
    return home if home is not None and console_actor(request).may_act_in(home.id) else None


def _state(one: TaskStanding) -> tuple[str, str]:
    """A word and its tone."""
    if one.altered:
        return one.altered.removeprefix("is ").removeprefix("was "), "bad"
    if one.overdue is not None:
        return f"overdue by {_length(one.overdue)}", "bad"
    if one.marks.is_running:
        return "running", "info"
    return ("on time", "good") if one.last_run else ("not run yet", "plain")


def _length(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
