"""Webhook endpoints in the console: where they go, how they fare, every delivery with its exact bytes."""

from typing import Any

from django.contrib import admin
from django.core.paginator import Page
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.safestring import SafeString
from unfold.decorators import display

from governance.admin.base import ConsoleAdmin
from governance.admin.json_text import pretty
from governance.admin.lists import BoundedPaginator, choice_filter
from governance.roles import AUDIT
from governance.selectors.lists import by_id
from workflows.admin.links import link
from workflows.admin.webhook_acts import ADD, DELIVERY_ACTS, ENDPOINT_ACTS
from workflows.models import WebhookDelivery, WebhookEndpoint
from workflows.selectors.webhook import (
    attempts_of,
    delivery_counts,
    delivery_list,
    endpoint_list,
    secrets_live,
)
from workflows.states import DeliveryState

PER_PAGE = 25
WHY = {"person": "disabled", "gone": "disabled: gone (410)", "failing": "disabled: failing for days"}
STATES = {state.value: state.value for state in DeliveryState}
LABELS = {"pending": "info", "delivered": "success", "failed": "danger"}


@admin.register(WebhookEndpoint)
class WebhookEndpointAdmin(ConsoleAdmin):
    view_permission = AUDIT
    addable = True
    list_display = ["name", "status_shown", "events_shown", "failures", "failing_since", "created_at", "organization"]
    list_select_related = ["organization"]
    search_fields = ["description", "=id"]
    ordering = ["-id"]
    fields = [
        "url",
        "status_shown",
        "events_shown",
        "description",
        "failures",
        "failing_since",
        "held_until",
        "disabled_at",
        "organization",
        "created_at",
    ]
    readonly_fields = fields
    list_before_template = "admin/workflows/webhook_list.html"
    change_form_outer_after_template = "admin/workflows/webhook.html"
    add_act = ADD
    acts = ENDPOINT_ACTS

    def get_queryset(self, request: HttpRequest) -> QuerySet[WebhookEndpoint]:
        return endpoint_list().select_related("organization")

    @admin.display(description="Endpoint")
    def name(self, obj: WebhookEndpoint) -> str:
        return str(obj)

    @display(
        description="Status",
        label={"enabled": "success", "failing": "warning"} | dict.fromkeys(WHY.values(), "danger"),
    )
    def status_shown(self, obj: WebhookEndpoint) -> str:
        if obj.enabled:
            return "failing" if obj.failures else "enabled"
        return WHY.get(obj.disabled_why, "disabled")

    @admin.display(description="Events")
    def events_shown(self, obj: WebhookEndpoint) -> str:
        return ", ".join(obj.events)

    def page_context(self, request: HttpRequest, obj: WebhookEndpoint) -> dict[str, Any]:
        state = request.GET.get("state")
        state = state if state in STATES else None
        rows = delivery_list(endpoint_id=obj.id, state=state)
        page: Page[WebhookDelivery] = BoundedPaginator(rows, PER_PAGE).get_page(request.GET.get("page"))
        return {
            "counts": delivery_counts(endpoint_id=obj.id),
            "secrets": secrets_live(endpoint_id=obj.id, at=timezone.now()),
            "deliveries": page,
            "delivery_state": state or "",
            "states": list(STATES),
        }


@admin.register(WebhookDelivery)
class WebhookDeliveryAdmin(ConsoleAdmin):
    view_permission = AUDIT
    list_display = ["event_type", "state_shown", "why", "tries", "endpoint", "created_at", "ended_at", "organization"]
    list_select_related = ["organization", "endpoint"]
    list_filter = [choice_filter("state", STATES, indexed=False)]
    hot = True
    search_fields = ["id"]
    search_help_text = "The full id of a delivery or of its subject."
    ordering = ["-id"]
    fields = [
        "event_type",
        "state_shown",
        "why",
        "tries",
        "next_try_at",
        "endpoint_shown",
        "event_id",
        "subject_id",
        "organization",
        "created_at",
        "ended_at",
    ]
    readonly_fields = fields
    list_before_template = "admin/workflows/webhook_delivery_list.html"
    change_form_outer_after_template = "admin/workflows/webhook_delivery.html"
    acts = DELIVERY_ACTS

    def get_queryset(self, request: HttpRequest) -> QuerySet[WebhookDelivery]:
        rows = super().get_queryset(request).select_related("organization", "endpoint")
        return rows.defer("body") if self.is_list(request) else rows

    def matches(self, term: str) -> Q | None:
        return by_id(term, "id", "subject_id")

    @display(description="State", label=LABELS)
    def state_shown(self, obj: WebhookDelivery) -> str:
        return obj.state

    @admin.display(description="Endpoint")
    def endpoint_shown(self, obj: WebhookDelivery) -> SafeString | str:
        if obj.endpoint.removed_at is not None:
            return f"{obj.endpoint} (removed)"
        page = self.admin_site.get_model_admin(WebhookEndpoint)
        return link(page.page_url("change", obj.endpoint_id), str(obj.endpoint))

    def page_context(self, request: HttpRequest, obj: WebhookDelivery) -> dict[str, Any]:
        attempts = attempts_of(delivery_id=obj.id)
        return {
            "body_text": bytes(obj.body).decode(),
            "attempts": [(attempt, pretty(attempt.headers)) for attempt in attempts],
        }
