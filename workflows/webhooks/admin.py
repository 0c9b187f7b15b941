"""Webhook endpoints in the console: their addresses and state, and every delivery with its exact bytes."""

from datetime import timedelta
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.paginator import Page
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.utils import timezone
from django.utils.safestring import SafeString
from unfold.decorators import display
from unfold.widgets import UnfoldAdminIntegerFieldWidget, UnfoldAdminTextareaWidget, UnfoldAdminTextInputWidget

from governance.console.admin.base import Act, ConsoleAdmin, console_actor
from governance.console.admin.forms import ConsoleForm, ReasonForm, pretty
from governance.console.admin.lists import BoundedPaginator, choice_filter
from governance.console.selectors.lists import by_id
from governance.people.rules.roles import AUDIT
from governance.retention.admin.forms import WhereForm
from workflows.runs.admin.runs import link
from workflows.webhooks.configured import webhook_private_hosts
from workflows.webhooks.models import WebhookDelivery, WebhookEndpoint
from workflows.webhooks.selectors import attempts_of, delivery_counts, delivery_list, endpoint_list, secrets_live
from workflows.webhooks.services import endpoints
from workflows.webhooks.services.redeliver import delivery_redeliver, failed_redeliver
from workflows.webhooks.states import WebhookDeliveryState


class Patterns(forms.CharField):
    """One per line."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(
            label="Events",
            widget=UnfoldAdminTextareaWidget(attrs={"rows": 4, "spellcheck": "false"}),
            help_text="One per line: a name such as attempt.completed, a prefix such as attempt.*, or * for all.",
            **kwargs,
        )

    def prepare_value(self, value: Any) -> Any:
        return "\n".join(value) if isinstance(value, list) else value

    def clean(self, value: Any) -> Any:
        return str(super().clean(value)).split()


def _url() -> forms.CharField:
    return forms.CharField(
        label="URL",
        max_length=500,
        widget=UnfoldAdminTextInputWidget,
        help_text=(
            "An https address of a public host. Do not put a password into it: everybody who can open this page "
            "sees it."
        ),
    )


def _description() -> forms.CharField:
    return forms.CharField(required=False, max_length=120, widget=UnfoldAdminTextInputWidget)


class EndpointForm(WhereForm):
    url = _url()
    events = Patterns()
    description = _description()


class EndpointChangeForm(ConsoleForm):
    url = _url()
    events = Patterns()
    description = _description()


class SecretRotateForm(forms.Form):
    hours = forms.IntegerField(
        label="Hours during which the old secret also signs",
        initial=24,
        min_value=0,
        max_value=720,
        widget=UnfoldAdminIntegerFieldWidget,
    )


Data = dict[str, Any]


def _secret_show_once(model_admin: ConsoleAdmin, request: HttpRequest, made: endpoints.IssuedEndpoint) -> HttpResponse:
    context = {
        **model_admin.admin_site.each_context(request),
        "title": "The secret",
        "secret": made.secret,
        "endpoint": made.endpoint,
        "opts": WebhookEndpoint._meta,
    }
    response = render(request, "admin/workflows/webhook_secret.html", context)
    response["Cache-Control"] = "no-store"
    return response


def _endpoint_add_act(model_admin: ConsoleAdmin, request: HttpRequest, obj: None, data: Data) -> HttpResponse:
    organization = data.pop("organization")
    made = endpoints.endpoint_create(
        actor=model_admin.require_operator(request, organization.id),
        at=timezone.now(),
        organization_id=organization.id,
        private_hosts=webhook_private_hosts(),
        **data,
    )
    return _secret_show_once(model_admin, request, made)


def _endpoint_change_act(model_admin: ConsoleAdmin, request: HttpRequest, obj: WebhookEndpoint, data: Data) -> str:
    endpoints.endpoint_change(
        actor=console_actor(request),
        at=timezone.now(),
        endpoint_id=obj.id,
        private_hosts=webhook_private_hosts(),
        **data,
    )
    return "Changed. Waiting deliveries go to the current address."


def _secret_rotate_act(
    model_admin: ConsoleAdmin, request: HttpRequest, obj: WebhookEndpoint, data: Data
) -> HttpResponse:
    made = endpoints.endpoint_secret_rotate(
        actor=console_actor(request),
        at=timezone.now(),
        endpoint_id=obj.id,
        overlap=timedelta(hours=data["hours"]),
    )
    return _secret_show_once(model_admin, request, made)


def _endpoint_test_act(
    model_admin: ConsoleAdmin, request: HttpRequest, obj: WebhookEndpoint, data: Data
) -> HttpResponse:
    made = endpoints.endpoint_test(actor=console_actor(request), at=timezone.now(), endpoint_id=obj.id, **data)
    page = model_admin.admin_site.get_model_admin(WebhookDelivery)
    shown: HttpResponse = page.done(request, made, "The test is being sent. Reload this page to see the result.")
    return shown


def _endpoint_enable_act(model_admin: ConsoleAdmin, request: HttpRequest, obj: WebhookEndpoint, data: Data) -> str:
    endpoints.endpoint_enable(actor=console_actor(request), at=timezone.now(), endpoint_id=obj.id)
    return "Enabled. You can now send failed deliveries again from here."


def _endpoint_disable_act(model_admin: ConsoleAdmin, request: HttpRequest, obj: WebhookEndpoint, data: Data) -> str:
    endpoints.endpoint_disable(actor=console_actor(request), at=timezone.now(), endpoint_id=obj.id, **data)
    return "Disabled. Waiting deliveries have failed. You can send them again after you enable the endpoint."


def _failed_redeliver_act(model_admin: ConsoleAdmin, request: HttpRequest, obj: WebhookEndpoint, data: Data) -> str:
    count = failed_redeliver(actor=console_actor(request), at=timezone.now(), endpoint_id=obj.id, **data)
    return f"{count:,} will be sent again."


def _endpoint_remove_act(
    model_admin: ConsoleAdmin, request: HttpRequest, obj: WebhookEndpoint, data: Data
) -> HttpResponse:
    endpoints.endpoint_remove(actor=console_actor(request), at=timezone.now(), endpoint_id=obj.id, **data)
    messages.success(request, "Removed. Nothing more is sent to it.")
    return HttpResponseRedirect(model_admin.page_url("changelist"))


def _delivery_redeliver_act(model_admin: ConsoleAdmin, request: HttpRequest, obj: WebhookDelivery, data: Data) -> str:
    delivery_redeliver(actor=console_actor(request), at=timezone.now(), delivery_id=obj.id, **data)
    return "It will be sent again, with the same id and the same body."


ADD = Act(
    "add",
    "Add a webhook endpoint",
    "Holdpoint sends signed events of the organization to this address from now on. The next page shows the secret "
    "once.",
    _endpoint_add_act,
    EndpointForm,
)
ENDPOINT_ACTS = [
    Act(
        "change",
        "Change",
        "Change the address, the events or the description.",
        _endpoint_change_act,
        EndpointChangeForm,
        initial=lambda obj: {"url": obj.url, "events": obj.events, "description": obj.description},
    ),
    Act(
        "test",
        "Send a test",
        "Sends a test event of type webhook.test. It describes no real change.",
        _endpoint_test_act,
        ReasonForm,
        available=lambda obj: obj.enabled,
    ),
    Act(
        "rotate",
        "Rotate the secret",
        "Creates a new secret and shows it once. During the overlap both secrets sign, so that the receiver has "
        "time to switch.",
        _secret_rotate_act,
        SecretRotateForm,
    ),
    Act(
        "redeliver",
        "Send failed ones again",
        "Sends the failed deliveries of this endpoint again, with the same ids and the same bodies. At most the "
        "oldest ten thousand.",
        _failed_redeliver_act,
        ReasonForm,
        available=lambda obj: obj.enabled,
    ),
    Act(
        "enable",
        "Enable",
        "Holdpoint sends events that happen from now on.",
        _endpoint_enable_act,
        available=lambda obj: not obj.enabled,
    ),
    Act(
        "disable",
        "Disable",
        "Nothing more is sent. Events that happen while the endpoint is disabled are not kept for it.",
        _endpoint_disable_act,
        ReasonForm,
        available=lambda obj: obj.enabled,
        danger=True,
    ),
    Act(
        "remove",
        "Remove",
        "Removes the endpoint for good. You can still read its deliveries for a while.",
        _endpoint_remove_act,
        ReasonForm,
        danger=True,
    ),
]
DELIVERY_ACTS = [
    Act(
        "redeliver",
        "Send again",
        "Sends it again from the start of the retry schedule, with the same id and the same body.",
        _delivery_redeliver_act,
        ReasonForm,
        available=lambda obj: obj.state != WebhookDeliveryState.PENDING and bool(obj.body),
    )
]

PER_PAGE = 25
WHY = {"person": "disabled", "gone": "disabled: gone (410)", "failing": "disabled: failing for days"}
STATES = {state.value: state.value for state in WebhookDeliveryState}
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
