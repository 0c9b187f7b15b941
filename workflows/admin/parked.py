"""Parked messages in the console: which one, why, and the two things that a person can do about it."""

from typing import Any

from django.conf import settings
from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.safestring import SafeString
from unfold.decorators import display

from governance.admin.base import Act, ConsoleAdmin, console_actor
from governance.admin.forms import ReasonForm, hash_text
from governance.roles import AUDIT
from governance.selectors.lists import by_id
from workflows.models import ParkedMessage
from workflows.selectors.stream import parked_list
from workflows.services.message_settle import message_dismiss, message_redrive
from workflows.states import ParkedStatus, ParkedWhy

LABELS = {"parked": "warning", "taken": "success", "dismissed": "info"}
WHY_WORDS = {
    ParkedWhy.SIGNATURE: "not signed by a live key",
    ParkedWhy.SCOPE: "the key may not send events",
    ParkedWhy.UNREADABLE: "not readable as JSON",
    ParkedWhy.WRONG_STREAM: "the event type does not belong to this stream",
    ParkedWhy.INVALID: "does not match the schema of its type",
    ParkedWhy.FOREIGN: "names a different organization than its key",
    ParkedWhy.REFUSED: "refused",
    ParkedWhy.DELIVERIES: "processing started several times and never finished",
}


class StatusFilter(admin.SimpleListFilter):
    """Without a choice: those that wait for a person."""

    title = "status"
    parameter_name = "status"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("all", "parked and settled")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset


def redrive(model_admin: ConsoleAdmin, request: HttpRequest, obj: ParkedMessage, data: dict[str, Any]) -> str:
    received = message_redrive(
        message_id=obj.id,
        reason_code=data["reason_code"],
        note=data["note"],
        actor=console_actor(request),
        at=timezone.now(),
        region=settings.DEPLOYMENT_REGION,
    )
    return "It had already arrived." if received.duplicate else f"Accepted: {received.event.outcome}."


def dismiss(model_admin: ConsoleAdmin, request: HttpRequest, obj: ParkedMessage, data: dict[str, Any]) -> str:
    message_dismiss(
        message_id=obj.id,
        reason_code=data["reason_code"],
        note=data["note"],
        actor=console_actor(request),
        at=timezone.now(),
    )
    return "Dismissed."


def is_parked(obj: ParkedMessage) -> bool:
    return obj.status == ParkedStatus.PARKED


@admin.register(ParkedMessage)
class ParkedMessageAdmin(ConsoleAdmin):
    list_display = ["event_type", "status_shown", "why_shown", "service_account", "parked_at", "organization"]
    list_select_related = ["organization", "service_account"]
    list_filter = [StatusFilter]
    view_permission = AUDIT
    hot = True
    search_fields = ["id"]
    search_help_text = "The full id of a row."
    ordering = ["-id"]
    fields = [
        "event_type",
        "status_shown",
        "why_shown",
        "service_account",
        "event_id",
        "entry_id",
        "hash_shown",
        "data_bytes",
        "deliveries",
        "parked_at",
        "settled_at",
        "settled_code",
        "organization",
    ]
    readonly_fields = fields
    list_before_template = "admin/workflows/parked_list.html"
    change_form_outer_after_template = "admin/workflows/parked.html"
    acts = [
        Act(
            "redrive",
            "Process again",
            "Holdpoint reads the message from its stream again and processes it as if it arrived now. No check is "
            "skipped.",
            redrive,
            ReasonForm,
            available=is_parked,
        ),
        Act(
            "dismiss",
            "Dismiss",
            "Holdpoint will not process the message. Its stream removes it when it expires; this row stays.",
            dismiss,
            ReasonForm,
            available=is_parked,
            danger=True,
        ),
    ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[ParkedMessage]:
        if not self.is_list(request):
            return super().get_queryset(request).select_related("organization", "service_account")
        return parked_list(status=None if request.GET.get("status") == "all" else ParkedStatus.PARKED)

    def matches(self, term: str) -> Q | None:
        return by_id(term)

    @display(description="Status", label=LABELS)
    def status_shown(self, obj: ParkedMessage) -> str:
        return obj.status

    @admin.display(description="Why")
    def why_shown(self, obj: ParkedMessage) -> str:
        return WHY_WORDS.get(ParkedWhy(obj.why), obj.why)

    @admin.display(description="SHA-256 of its content")
    def hash_shown(self, obj: ParkedMessage) -> SafeString:
        return hash_text(obj.data_sha256)

    def page_context(self, request: HttpRequest, obj: ParkedMessage) -> dict[str, Any]:
        return {"problems": obj.problems}
