"""The console's page of the clock: every built-in scheduled task, when it ran, and whether somebody changed it. It only
reads. Two people together change an interval, by an authority change; nothing else about a task can be changed."""

from typing import Any

from django.conf import settings
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from governance.console.admin.base import console_actor
from governance.people.rules.roles import VIEW
from governance.schedule.selectors import TaskStanding, foreign_tasks, schedule_standing


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
    }
    return render(request, "admin/console/schedule.html", context)


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
