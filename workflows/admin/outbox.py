"""The outbox in the console: what was published, and what waits for its stream; parked ones can be published again."""

from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.safestring import SafeString
from unfold.decorators import display

from governance.admin.base import Act, ConsoleAdmin, console_actor
from governance.admin.forms import ReasonForm
from governance.admin.json_text import pretty
from governance.selectors.lists import by_id, newest
from workflows.admin.links import run_link
from workflows.models import OutboxEvent
from workflows.selectors.run_console import outbox_list, outbox_parked, outbox_stuck
from workflows.services.outbox_redrive import outbox_redrive
from workflows.states import OutboxStatus

LABELS = {"pending": "warning", "sent": "success", "parked": "danger"}


class StatusFilter(admin.SimpleListFilter):
    title = "status"
    parameter_name = "status"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("pending", "pending, of any age"), ("parked", "parked, of any age"), ("sent", "sent")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return newest(queryset).filter(status=self.value()) if self.value() == "sent" else queryset


def redrive(model_admin: ConsoleAdmin, request: HttpRequest, obj: OutboxEvent, data: dict[str, Any]) -> str:
    outbox_redrive(
        event_id=obj.id,
        reason_code=data["reason_code"],
        note=data["note"],
        actor=console_actor(request),
        at=timezone.now(),
    )
    return "The event will be published again, followed by the events that wait behind it."


@admin.register(OutboxEvent)
class OutboxEventAdmin(ConsoleAdmin):
    list_display = ["event_type", "status_shown", "tries", "last_error", "created_at", "sent_at", "organization"]
    list_select_related = ["organization"]
    list_filter = [StatusFilter]
    hot = True
    search_fields = ["id"]
    search_help_text = "The full id of an event."
    fields = [
        "event_type",
        "status_shown",
        "tries",
        "last_error",
        "next_try_at",
        "created_at",
        "sent_at",
        "run_shown",
        "id",
    ]
    readonly_fields = fields
    list_before_template = "admin/workflows/outbox_list.html"
    change_form_outer_after_template = "admin/workflows/event.html"
    acts = [
        Act(
            "redrive",
            "Publish again",
            "The stream refused this event several times. Holdpoint publishes it again, with the same id and in the "
            "same order. Later events of its run wait until it is published.",
            redrive,
            ReasonForm,
            available=lambda obj: obj.status == OutboxStatus.PARKED,
        )
    ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[OutboxEvent]:
        if not self.is_list(request):
            return super().get_queryset(request).select_related("organization", "instance")
        if request.GET.get("status") == "pending":
            return outbox_stuck().defer("envelope")
        if request.GET.get("status") == "parked":
            return outbox_parked().defer("envelope")
        return outbox_list().defer("envelope")

    def matches(self, term: str) -> Q | None:
        return by_id(term)

    def get_ordering(self, request: HttpRequest) -> list[str]:
        return ["next_try_at", "id"] if request.GET.get("status") == "pending" else ["-id"]

    @display(description="Status", label=LABELS)
    def status_shown(self, obj: OutboxEvent) -> str:
        return obj.status

    @admin.display(description="Run")
    def run_shown(self, obj: OutboxEvent) -> SafeString | str:
        return run_link(obj.instance_id, "none")

    def page_context(self, request: HttpRequest, obj: OutboxEvent) -> dict[str, Any]:
        return {"envelope_text": pretty(obj.envelope)}
