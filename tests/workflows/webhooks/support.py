"""Words of the webhook tests: an endpoint at a receiver on loopback, events for it, and a sender."""

import json
from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from governance.ledger.models import LedgerEntry
from reasoncodes.base.ids import uuid7
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.execution.target import CountingTarget
from tests.cast import Cast
from workflows.events.rules import stamp
from workflows.webhooks.models import WebhookAttempt, WebhookDelivery, WebhookEndpoint
from workflows.webhooks.rules.events import body_bytes
from workflows.webhooks.services.endpoints import IssuedEndpoint, endpoint_create
from workflows.webhooks.services.gather import EndpointEvent, deliveries_make
from workflows.webhooks.services.sender import deliveries_send

URL = "/api/v1/webhook-endpoints"
DELIVERIES = "/api/v1/deliveries"
REASON = {"reason_code": "rehearsal"}


class Hooks:
    def __init__(self, cast: Cast, target: CountingTarget) -> None:
        self.cast, self.target = cast, target
        self.hosts = frozenset({target.host})
        self.clock = timezone.now()

    def endpoint(self, *events: str, organization: Any = None, url: str = "") -> IssuedEndpoint:
        organization = organization or self.cast.organization
        with every_tenant():
            return endpoint_create(
                actor=self.cast.actor(self.cast.operator, [organization]),
                at=timezone.now(),
                organization_id=organization.id,
                url=url or self.target.url,
                events=events or ["*"],
                private_hosts=self.hosts,
            )

    def tell(self, subjects: Sequence[UUID], *, each: int = 1, name: str = "case.reviewed") -> int:
        """`each` events about each subject, numbered in their order."""
        events = [self.event(subject, number, name) for number in range(1, each + 1) for subject in subjects]
        with every_tenant(), transaction.atomic():
            return deliveries_make(events, at=timezone.now())

    def event(self, subject: UUID, number: int, name: str = "case.reviewed") -> EndpointEvent:
        body = body_bytes(name, stamp(timezone.now()), {"instance_id": str(subject), "number": number})
        return EndpointEvent(uuid7(), self.cast.organization.id, name, subject, number, body)

    def send(self, *, after: timedelta = timedelta(0)) -> int:
        """By a clock that is so much later."""
        with every_tenant():
            return deliveries_send(now=lambda: timezone.now() + after, private_hosts=self.hosts)

    def send_next(self) -> int:
        """At the moment when the next one that waits for its retry is due and its endpoint is no longer held back."""
        with every_tenant():
            waiting = WebhookDelivery.objects.filter(state="pending", failures__gt=0).select_related("endpoint")
            moment = min(max(one.next_try_at, one.endpoint.held_until or one.next_try_at) for one in waiting)
        self.clock = moment + timedelta(seconds=1)
        return self.send(after=self.clock - timezone.now())

    @property
    def got(self) -> list[tuple[str, dict[str, Any]]]:
        """What reached the receiver: webhook-id and body, in the order of their arrival."""
        return [(one["headers"]["webhook-id"], json.loads(one["raw"])) for one in self.target.requests]


def deliveries(**about: Any) -> list[WebhookDelivery]:
    with every_tenant():
        return list(WebhookDelivery.objects.filter(**about).order_by("number", "id"))


def attempts(delivery: WebhookDelivery) -> list[WebhookAttempt]:
    with every_tenant():
        return list(WebhookAttempt.objects.filter(delivery=delivery).order_by("number"))


def fresh(endpoint: WebhookEndpoint) -> WebhookEndpoint:
    with every_tenant():
        return WebhookEndpoint.objects.get(id=endpoint.id)


def entries(subject_id: UUID) -> list[tuple[str, str, str]]:
    with every_tenant():
        rows = LedgerEntry.objects.filter(subject_id=subject_id).order_by("id")
        return list(rows.values_list("action", "actor_kind", "reason_code"))
