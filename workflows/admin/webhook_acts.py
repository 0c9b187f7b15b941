"""What operators do to webhook endpoints and deliveries."""

from datetime import timedelta
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.utils import timezone

from governance.admin.base import Act, ConsoleAdmin, console_actor
from governance.admin.forms import ReasonForm
from workflows.admin.webhook_forms import EndpointChangeForm, EndpointForm, RotateForm
from workflows.models import WebhookDelivery, WebhookEndpoint
from workflows.services import webhook_endpoint as endpoints
from workflows.services.webhook_redeliver import delivery_redeliver, failed_redeliver
from workflows.states import DeliveryState
from workflows.webhooks.configured import webhook_private_hosts

Data = dict[str, Any]


def show_once(model_admin: ConsoleAdmin, request: HttpRequest, made: endpoints.IssuedEndpoint) -> HttpResponse:
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


def add(model_admin: ConsoleAdmin, request: HttpRequest, obj: None, data: Data) -> HttpResponse:
    organization = data.pop("organization")
    made = endpoints.endpoint_create(
        actor=model_admin.require_operator(request, organization.id),
        at=timezone.now(),
        organization_id=organization.id,
        private_hosts=webhook_private_hosts(),
        **data,
    )
    return show_once(model_admin, request, made)


def change(model_admin: ConsoleAdmin, request: HttpRequest, obj: WebhookEndpoint, data: Data) -> str:
    endpoints.endpoint_change(
        actor=console_actor(request),
        at=timezone.now(),
        endpoint_id=obj.id,
        private_hosts=webhook_private_hosts(),
        **data,
    )
    return "Changed. What waits goes to the address as it is now."


def rotate(model_admin: ConsoleAdmin, request: HttpRequest, obj: WebhookEndpoint, data: Data) -> HttpResponse:
    made = endpoints.endpoint_secret_rotate(
        actor=console_actor(request),
        at=timezone.now(),
        endpoint_id=obj.id,
        overlap=timedelta(hours=data["hours"]),
    )
    return show_once(model_admin, request, made)


def test(model_admin: ConsoleAdmin, request: HttpRequest, obj: WebhookEndpoint, data: Data) -> HttpResponse:
    made = endpoints.endpoint_test(actor=console_actor(request), at=timezone.now(), endpoint_id=obj.id, **data)
    page = model_admin.admin_site.get_model_admin(WebhookDelivery)
    shown: HttpResponse = page.done(request, made, "On its way. Load this page again to see what came of it.")
    return shown


def enable(model_admin: ConsoleAdmin, request: HttpRequest, obj: WebhookEndpoint, data: Data) -> str:
    endpoints.endpoint_enable(actor=console_actor(request), at=timezone.now(), endpoint_id=obj.id)
    return "Enabled. What failed before can be sent again from here."


def disable(model_admin: ConsoleAdmin, request: HttpRequest, obj: WebhookEndpoint, data: Data) -> str:
    endpoints.endpoint_disable(actor=console_actor(request), at=timezone.now(), endpoint_id=obj.id, **data)
    return "Disabled. What waited for it has failed and can be sent again once it is enabled."


def redeliver_failed(model_admin: ConsoleAdmin, request: HttpRequest, obj: WebhookEndpoint, data: Data) -> str:
    count = failed_redeliver(actor=console_actor(request), at=timezone.now(), endpoint_id=obj.id, **data)
    return f"{count:,} will be sent again."


def remove(model_admin: ConsoleAdmin, request: HttpRequest, obj: WebhookEndpoint, data: Data) -> HttpResponse:
    endpoints.endpoint_remove(actor=console_actor(request), at=timezone.now(), endpoint_id=obj.id, **data)
    messages.success(request, "Removed. Nothing is sent to it any more.")
    return HttpResponseRedirect(model_admin.page_url("changelist"))


def redeliver(model_admin: ConsoleAdmin, request: HttpRequest, obj: WebhookDelivery, data: Data) -> str:
    delivery_redeliver(actor=console_actor(request), at=timezone.now(), delivery_id=obj.id, **data)
    return "It will be sent again, under the same id and in the same bytes."


ADD = Act(
    "add",
    "Add a webhook endpoint",
    "What happens in the organization from now on is sent there, signed. The secret is shown once, on the next page.",
    add,
    EndpointForm,
)
ENDPOINT_ACTS = [
    Act(
        "change",
        "Change",
        "Another address, other events or another description.",
        change,
        EndpointChangeForm,
        initial=lambda obj: {"url": obj.url, "events": obj.events, "description": obj.description},
    ),
    Act(
        "test",
        "Send a test",
        "Sends an event of type webhook.test, which says nothing but that.",
        test,
        ReasonForm,
        available=lambda obj: obj.enabled,
    ),
    Act(
        "rotate",
        "Rotate the secret",
        "A new secret is shown once. Until the overlap is over both sign, so that the receiver can change in its time.",
        rotate,
        RotateForm,
    ),
    Act(
        "redeliver",
        "Send failed ones again",
        "Everything that failed here, under the same ids and in the same bytes; the oldest ten thousand at most.",
        redeliver_failed,
        ReasonForm,
        available=lambda obj: obj.enabled,
    ),
    Act(
        "enable",
        "Enable",
        "What happens from now on is sent again.",
        enable,
        available=lambda obj: not obj.enabled,
    ),
    Act(
        "disable",
        "Disable",
        "Nothing is sent any more, and what happens meanwhile is not kept for it.",
        disable,
        ReasonForm,
        available=lambda obj: obj.enabled,
        danger=True,
    ),
    Act("remove", "Remove", "For good. Its deliveries stay readable for a while.", remove, ReasonForm, danger=True),
]
DELIVERY_ACTS = [
    Act(
        "redeliver",
        "Send again",
        "Once more from the beginning of the schedule, under the same id and in the same bytes.",
        redeliver,
        ReasonForm,
        available=lambda obj: obj.state != DeliveryState.PENDING and bool(obj.body),
    )
]
