"""Events that no run took, in the console: look at one, and drive it again once something can take it."""

from typing import Any

from django.conf import settings
from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.decorators import display

from governance.admin.base import Act, ConsoleAdmin, console_actor
from governance.admin.json_text import pretty
from governance.selectors.lists import by_id
from workflows.admin.links import link, run_link
from workflows.admin.run_story import DRIFT_WORDS
from workflows.models import WorkflowEvent
from workflows.selectors.event import event_list, event_was_redriven
from workflows.services.event_redrive import event_redrive
from workflows.states import EventOutcome

WAITING, REDRIVEN, DRIFTED = "waiting", "redriven", "drift"
LABELS = {"unmatched": "warning", "advanced": "success"} | dict.fromkeys(DRIFT_WORDS.values(), "danger")


class WhichFilter(admin.SimpleListFilter):
    """Without a choice: those that wait for a person."""

    title = "which"
    parameter_name = "which"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [
            (WAITING, "unmatched, waiting"),
            (REDRIVEN, "processed again"),
            (DRIFTED, "drift of client-driven runs"),
        ]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset


def redrive(model_admin: ConsoleAdmin, request: HttpRequest, obj: WorkflowEvent, data: dict[str, Any]) -> Any:
    made = event_redrive(
        event_id=obj.id, actor=console_actor(request), at=timezone.now(), region=settings.DEPLOYMENT_REGION
    )
    if made.outcome == EventOutcome.UNMATCHED:
        return model_admin.done(request, made, "No run could accept it. Holdpoint kept it again, as this event.")
    if made.instance is None:
        return model_admin.done(request, made, f"Processed again: {made.outcome}.")
    run: HttpResponse = model_admin.admin_site.get_model_admin(type(made.instance)).done(
        request, made.instance, f"Processed again: {made.outcome}."
    )
    return run


@admin.register(WorkflowEvent)
class KeptEventAdmin(ConsoleAdmin):
    list_display = ["event_type", "outcome_shown", "case_id", "received_at", "organization"]
    list_select_related = ["organization"]
    list_filter = [WhichFilter]
    hot = True
    search_fields = ["id"]
    search_help_text = "The full id of an event."
    ordering = ["-id"]
    fields = [
        "event_type",
        "outcome_shown",
        "case_id",
        "run_shown",
        "event_id",
        "correlation_id",
        "redriven_shown",
        "received_at",
        "organization",
    ]
    readonly_fields = fields
    list_before_template = "admin/workflows/event_list.html"
    change_form_outer_after_template = "admin/workflows/event.html"
    acts = [
        Act(
            "redrive",
            "Process again",
            "Holdpoint processes the event as if it arrived now. You can do this once: if no run accepts it, "
            "Holdpoint keeps it as a new event.",
            redrive,
            available=lambda obj: obj.outcome == EventOutcome.UNMATCHED and not event_was_redriven(event_id=obj.id),
        )
    ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[WorkflowEvent]:
        if not self.is_list(request):
            return super().get_queryset(request).select_related("organization", "instance", "redrives")
        which = request.GET.get("which", WAITING)
        if which == DRIFTED:
            return event_list(outcome=EventOutcome.DRIFT).defer("envelope", "facts")
        return event_list(outcome=EventOutcome.UNMATCHED, redriven=which == REDRIVEN).defer("envelope", "facts")

    def matches(self, term: str) -> Q | None:
        return by_id(term, "id", "event_id")

    @display(description="Outcome", label=LABELS)
    def outcome_shown(self, obj: WorkflowEvent) -> str:
        return DRIFT_WORDS.get(obj.drift, obj.outcome)

    @admin.display(description="Run")
    def run_shown(self, obj: WorkflowEvent) -> SafeString | str:
        return run_link(obj.instance_id, "no run accepted it")

    @admin.display(description="Processed again")
    def redriven_shown(self, obj: WorkflowEvent) -> SafeString | str:
        if obj.redrives_id is not None:
            return format_html("made of {}", link(self.page_url("change", obj.redrives_id), "another event"))
        return "yes" if event_was_redriven(event_id=obj.id) else "no"

    def page_context(self, request: HttpRequest, obj: WorkflowEvent) -> dict[str, Any]:
        return {"envelope_text": pretty(obj.envelope)}
