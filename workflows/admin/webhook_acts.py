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
    return "Changed. Waiting deliveries go to the current address."


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
    shown: HttpResponse = page.done(request, made, "The test is being sent. Reload this page to see the result.")
    return shown


def enable(model_admin: ConsoleAdmin, request: HttpRequest, obj: WebhookEndpoint, data: Data) -> str:
    endpoints.endpoint_enable(actor=console_actor(request), at=timezone.now(), endpoint_id=obj.id)
    return "Enabled. You can now send failed deliveries again from here."


def disable(model_admin: ConsoleAdmin, request: HttpRequest, obj: WebhookEndpoint, data: Data) -> str:
    endpoints.endpoint_disable(actor=console_actor(request), at=timezone.now(), endpoint_id=obj.id, **data)
    return "Disabled. Waiting deliveries have failed. You can send them again after you enable the endpoint."


def redeliver_failed(model_admin: ConsoleAdmin, request: HttpRequest, obj: WebhookEndpoint, data: Data) -> str:
    count = failed_redeliver(actor=console_actor(request), at=timezone.now(), endpoint_id=obj.id, **data)
    return f"{count:,} will be sent again."


def remove(model_admin: ConsoleAdmin, request: HttpRequest, obj: WebhookEndpoint, data: Data) -> HttpResponse:
    endpoints.endpoint_remove(actor=console_actor(request), at=timezone.now(), endpoint_id=obj.id, **data)
    messages.success(request, "Removed. Nothing more is sent to it.")
    return HttpResponseRedirect(model_admin.page_url("changelist"))


def redeliver(model_admin: ConsoleAdmin, request: HttpRequest, obj: WebhookDelivery, data: Data) -> str:
    delivery_redeliver(actor=console_actor(request), at=timezone.now(), delivery_id=obj.id, **data)
    return "It will be sent again, with the same id and the same body."


ADD = Act(
    "add",
    "Add a webhook endpoint",
    "Holdpoint sends signed events of the organization to this address from now on. The next page shows the secret "
    "once.",
    add,
    EndpointForm,
)
ENDPOINT_ACTS = [
    Act(
        "change",
        "Change",
        "Change the address, the events or the description.",
        change,
        EndpointChangeForm,
        initial=lambda obj: {"url": obj.url, "events": obj.events, "description": obj.description},
    ),
    Act(
        "test",
        "Send a test",
        "Sends a test event of type webhook.test. It describes no real change.",
        test,
        ReasonForm,
        available=lambda obj: obj.enabled,
    ),
    Act(
        "rotate",
        "Rotate the secret",
        "Creates a new secret and shows it once. During the overlap both secrets sign, so that the receiver has "
        "time to switch.",
        rotate,
        RotateForm,
    ),
    Act(
        "redeliver",
        "Send failed ones again",
        "Sends the failed deliveries of this endpoint again, with the same ids and the same bodies. At most the "
        "oldest ten thousand.",
        redeliver_failed,
        ReasonForm,
        available=lambda obj: obj.enabled,
    ),
    Act(
        "enable",
        "Enable",
        "Holdpoint sends events that happen from now on.",
        enable,
        available=lambda obj: not obj.enabled,
    ),
    Act(
        "disable",
        "Disable",
        "Nothing more is sent. Events that happen while the endpoint is disabled are not kept for it.",
        disable,
        ReasonForm,
        available=lambda obj: obj.enabled,
        danger=True,
    ),
    Act(
        "remove",
        "Remove",
        "Removes the endpoint for good. You can still read its deliveries for a while.",
        remove,
        ReasonForm,
        danger=True,
    ),
]
DELIVERY_ACTS = [
    Act(
        "redeliver",
        "Send again",
        "Sends it again from the start of the retry schedule, with the same id and the same body.",
        redeliver,
        ReasonForm,
        available=lambda obj: obj.state != DeliveryState.PENDING and bool(obj.body),
    )
]
