"""Unmatched events, the outbox and parked messages in the console: look at them, process or publish them again."""

from typing import Any

from django.conf import settings
from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.decorators import display

from governance.console.admin.base import Act, ConsoleAdmin, console_actor
from governance.console.admin.forms import ReasonForm, hash_text, pretty
from governance.console.selectors.lists import by_id, newest
from governance.people.rules.roles import AUDIT
from workflows.events.models import OutboxEvent, ParkedMessage, WorkflowEvent
from workflows.events.selectors import event_list, event_was_redriven, parked_list
from workflows.events.services.messages import message_dismiss, message_redrive
from workflows.events.services.outbox import outbox_redrive
from workflows.events.services.redrive import event_redrive
from workflows.events.states import EventOutcome, OutboxStatus, ParkedStatus, ParkedWhy
from workflows.runs.admin.runs import link, run_link
from workflows.runs.admin.story import DRIFT_WORDS
from workflows.runs.selectors.console import outbox_list, outbox_parked, outbox_stuck

WAITING, REDRIVEN, DRIFTED = "waiting", "redriven", "drift"
KEPT_LABELS = {"unmatched": "warning", "advanced": "success"} | dict.fromkeys(DRIFT_WORDS.values(), "danger")


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


def _kept_event_redrive_act(
    model_admin: ConsoleAdmin, request: HttpRequest, obj: WorkflowEvent, data: dict[str, Any]
) -> Any:
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
            _kept_event_redrive_act,
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

    @display(description="Outcome", label=KEPT_LABELS)
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


OUTBOX_LABELS = {"pending": "warning", "sent": "success", "parked": "danger"}


class OutboxStatusFilter(admin.SimpleListFilter):
    title = "status"
    parameter_name = "status"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("pending", "pending, of any age"), ("parked", "parked, of any age"), ("sent", "sent")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return newest(queryset).filter(status=self.value()) if self.value() == "sent" else queryset


def _outbox_redrive_act(model_admin: ConsoleAdmin, request: HttpRequest, obj: OutboxEvent, data: dict[str, Any]) -> str:
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
    list_filter = [OutboxStatusFilter]
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
            _outbox_redrive_act,
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

    @display(description="Status", label=OUTBOX_LABELS)
    def status_shown(self, obj: OutboxEvent) -> str:
        return obj.status

    @admin.display(description="Run")
    def run_shown(self, obj: OutboxEvent) -> SafeString | str:
        return run_link(obj.instance_id, "none")

    def page_context(self, request: HttpRequest, obj: OutboxEvent) -> dict[str, Any]:
        return {"envelope_text": pretty(obj.envelope)}


PARKED_LABELS = {"parked": "warning", "taken": "success", "dismissed": "info"}
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


class ParkedStatusFilter(admin.SimpleListFilter):
    """Without a choice: those that wait for a person."""

    title = "status"
    parameter_name = "status"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("all", "parked and settled")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset


def _parked_redrive_act(
    model_admin: ConsoleAdmin, request: HttpRequest, obj: ParkedMessage, data: dict[str, Any]
) -> str:
    received = message_redrive(
        message_id=obj.id,
        reason_code=data["reason_code"],
        note=data["note"],
        actor=console_actor(request),
        at=timezone.now(),
        region=settings.DEPLOYMENT_REGION,
    )
    return "It had already arrived." if received.duplicate else f"Accepted: {received.event.outcome}."


def _parked_dismiss_act(
    model_admin: ConsoleAdmin, request: HttpRequest, obj: ParkedMessage, data: dict[str, Any]
) -> str:
    message_dismiss(
        message_id=obj.id,
        reason_code=data["reason_code"],
        note=data["note"],
        actor=console_actor(request),
        at=timezone.now(),
    )
    return "Dismissed."


def _is_parked(obj: ParkedMessage) -> bool:
    return obj.status == ParkedStatus.PARKED


@admin.register(ParkedMessage)
class ParkedMessageAdmin(ConsoleAdmin):
    list_display = ["event_type", "status_shown", "why_shown", "service_account", "parked_at", "organization"]
    list_select_related = ["organization", "service_account"]
    list_filter = [ParkedStatusFilter]
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
            _parked_redrive_act,
            ReasonForm,
            available=_is_parked,
        ),
        Act(
            "dismiss",
            "Dismiss",
            "Holdpoint will not process the message. Its stream removes it when it expires; this row stays.",
            _parked_dismiss_act,
            ReasonForm,
            available=_is_parked,
            danger=True,
        ),
    ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[ParkedMessage]:
        if not self.is_list(request):
            return super().get_queryset(request).select_related("organization", "service_account")
        return parked_list(status=None if request.GET.get("status") == "all" else ParkedStatus.PARKED)

    def matches(self, term: str) -> Q | None:
        return by_id(term)

    @display(description="Status", label=PARKED_LABELS)
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
