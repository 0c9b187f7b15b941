"""A person has one delivery sent again, or all failed ones of an endpoint. Same id, same bytes."""

from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from governance.boundary.services import note_create
from governance.ledger.services import ledger_append
from governance.outside.wake_up import wake_up_once
from governance.violations.services import violations_recorded
from reasoncodes.base.actors import Actor
from reasoncodes.base.errors import NotFound, WrongState
from reasoncodes.codes import Scope
from reasoncodes.selectors import reason_code_require
from workflows.webhooks.models import WebhookDelivery, WebhookEndpoint
from workflows.webhooks.selectors import delivery_get, endpoint_get
from workflows.webhooks.services.gather import TASK
from workflows.webhooks.states import WebhookDeliveryState

# One order is one UPDATE in one transaction; a second order takes the next ones.
AT_ONCE = 10_000


@violations_recorded
def delivery_redeliver(
    *, actor: Actor, at: datetime, delivery_id: UUID, reason_code: str, note: str = ""
) -> WebhookDelivery:
    """Send a delivery again; its schedule starts from the beginning."""
    # Lock order: endpoint, delivery, as in deliver.py; otherwise this could deadlock with a sender.
    with transaction.atomic():
        seen = delivery_get(delivery_id=delivery_id)
        endpoint = _enabled(actor, seen.endpoint_id)
        delivery = WebhookDelivery.objects.select_for_update(no_key=True).get(id=delivery_id)
        if delivery.state == WebhookDeliveryState.PENDING:
            raise WrongState("It has not ended yet; it will be tried again by itself.")
        if not delivery.body:
            raise WrongState("What it said was erased, so that it cannot be sent again.")
        payload = {"endpoint": str(endpoint.id), "event": str(delivery.event_id), "was": delivery.state}
        delivery.state, delivery.failures, delivery.next_try_at = WebhookDeliveryState.PENDING.value, 0, at
        delivery.why, delivery.ended_at = "", None
        delivery.save(update_fields=["state", "failures", "next_try_at", "why", "ended_at"])
        said = _reason(endpoint, reason_code, note)
        _record("webhook_delivery", delivery.id, endpoint, payload | said, reason_code, actor, at)
        wake_up_once(TASK)
    return delivery


@violations_recorded
def failed_redeliver(*, actor: Actor, at: datetime, endpoint_id: UUID, reason_code: str, note: str = "") -> int:
    """Send failed deliveries again, the oldest first, at most AT_ONCE; returns how many."""
    with transaction.atomic():
        endpoint = _enabled(actor, endpoint_id)
        said = _reason(endpoint, reason_code, note)
        failed = WebhookDelivery.objects.filter(endpoint=endpoint, state=WebhookDeliveryState.FAILED).exclude(body=b"")
        chosen = failed.order_by("id").values("id")[:AT_ONCE]
        count = WebhookDelivery.objects.filter(id__in=chosen, state=WebhookDeliveryState.FAILED).update(
            state=WebhookDeliveryState.PENDING, failures=0, next_try_at=at, why="", ended_at=None
        )
        if not count:
            raise WrongState("Nothing has failed here.")
        _record("webhook_endpoint", endpoint.id, endpoint, {"count": count} | said, reason_code, actor, at)
        wake_up_once(TASK)
    return count


def _enabled(actor: Actor, endpoint_id: UUID) -> WebhookEndpoint:
    endpoint = endpoint_get(endpoint_id=endpoint_id, lock=True)
    if not actor.may_act_in(endpoint.organization_id):
        raise NotFound
    if not endpoint.enabled:
        raise WrongState("The endpoint is disabled. Enable it first.")
    return endpoint


def _reason(endpoint: WebhookEndpoint, reason_code: str, note: str) -> dict[str, str]:
    organization_id = endpoint.organization_id
    reason_code_require(organization_id=organization_id, scope=Scope.INTERVENTION, code=reason_code, note=note)
    kept = note_create(organization_id=organization_id, text=note)
    return {"note": str(kept.id), "note_sha256": kept.sha256} if kept else {}


def _record(
    subject_type: str,
    subject_id: UUID,
    endpoint: WebhookEndpoint,
    payload: dict[str, Any],
    reason_code: str,
    actor: Actor,
    at: datetime,
) -> None:
    ledger_append(
        action=f"{subject_type}.redelivered",
        organization_id=endpoint.organization_id,
        subject_type=subject_type,
        subject_id=subject_id,
        actor=actor,
        at=at,
        payload=payload,
        reason_code=reason_code,
    )
