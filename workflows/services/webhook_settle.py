"""What comes of a try: delivered, tried again, given up; and what it says about its endpoint. Lock order: endpoint,
delivery."""

from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.db.models import Q

from governance.ledger.append import ledger_append
from reasoncodes.actors import SYSTEM, Actor
from workflows.models import WebhookAttempt, WebhookDelivery, WebhookEndpoint
from workflows.states import DeliveryState, DisabledWhy
from workflows.webhooks.schedule import FAILING, hold, next_try
from workflows.webhooks.sending import DELIVERED, GONE_OUTCOME, Sent

ENDPOINT_DISABLED = "endpoint_disabled"
CODES = {DisabledWhy.GONE: "webhook_gone", DisabledWhy.FAILING: "webhook_failing"}


def attempt_settle(*, delivery_id: UUID, attempt_id: UUID, tries: int, sent: Sent, at: datetime) -> None:
    with transaction.atomic():
        endpoint_id = WebhookDelivery.objects.values_list("endpoint_id", flat=True).get(id=delivery_id)
        good = sent.outcome == DELIVERED
        endpoint = _endpoint_lock(endpoint_id, good=good)
        delivery = WebhookDelivery.objects.select_for_update(no_key=True).defer("body").get(id=delivery_id)
        _write_down(attempt_id, sent)
        if good:
            _delivered(delivery, at)
        elif delivery.tries == tries:  # otherwise the lease was over, and the newer try decides
            _failed(delivery, sent, at)
        if endpoint is not None:
            _judge(endpoint, sent, at)


def _endpoint_lock(endpoint_id: UUID, *, good: bool) -> WebhookEndpoint | None:
    """A good answer changes nothing at a healthy endpoint, so its row is left alone then."""
    rows = WebhookEndpoint.objects.select_for_update(no_key=True).filter(id=endpoint_id)
    return (rows.filter(Q(failures__gt=0) | Q(succeeded_at=None)) if good else rows).first()


def _write_down(attempt_id: UUID, sent: Sent) -> None:
    WebhookAttempt.objects.filter(id=attempt_id).update(
        outcome=sent.outcome,
        status=sent.status,
        duration_ms=sent.duration_ms,
        response_bytes=sent.response_bytes,
        response_sha256=sent.response_sha256,
        truncated=sent.truncated,
    )


def _failed(delivery: WebhookDelivery, sent: Sent, at: datetime) -> None:
    """A try that was never answered because its sender died does not count: only what a receiver did."""
    if delivery.state != DeliveryState.PENDING:
        return
    delivery.failures, delivery.why = delivery.failures + 1, sent.outcome
    again = next_try(delivery_id=delivery.id, failures=delivery.failures, at=at)
    if again is None or sent.outcome == GONE_OUTCOME:
        delivery.state, delivery.ended_at = DeliveryState.FAILED.value, at
    delivery.next_try_at = again or at
    delivery.save(update_fields=["failures", "why", "state", "ended_at", "next_try_at"])


def _delivered(delivery: WebhookDelivery, at: datetime) -> None:
    if delivery.state == DeliveryState.PENDING:
        delivery.state, delivery.why, delivery.ended_at = DeliveryState.DELIVERED.value, DELIVERED, at
        delivery.save(update_fields=["state", "why", "ended_at"])


def _judge(endpoint: WebhookEndpoint, sent: Sent, at: datetime) -> None:
    if sent.outcome == DELIVERED:
        endpoint.failures, endpoint.failing_since, endpoint.held_until = 0, None, None
        endpoint.succeeded_at = at
    else:
        endpoint.failures += 1
        endpoint.failing_since = endpoint.failing_since or at
        endpoint.held_until = hold(failures=endpoint.failures, at=at, retry_after=sent.retry_after)
    endpoint.save(update_fields=["failures", "failing_since", "held_until", "succeeded_at"])
    if endpoint.enabled and sent.outcome == GONE_OUTCOME:
        endpoint_disable_locked(endpoint, DisabledWhy.GONE, actor=SYSTEM, at=at)
    elif endpoint.enabled and endpoint.failing_since and at - endpoint.failing_since >= FAILING:
        endpoint_disable_locked(endpoint, DisabledWhy.FAILING, actor=SYSTEM, at=at)


def endpoint_disable_locked(
    endpoint: WebhookEndpoint, why: DisabledWhy, *, actor: Actor, at: datetime, reason_code: str = "", note: str = ""
) -> int:
    """What waits for it has failed, and a person can have it sent again; how many that were."""
    endpoint.enabled, endpoint.disabled_why, endpoint.disabled_at, endpoint.updated_at = False, why.value, at, at
    endpoint.removed_at = at if why == DisabledWhy.REMOVED else None
    endpoint.save(update_fields=["enabled", "disabled_why", "disabled_at", "removed_at", "updated_at"])
    pending = WebhookDelivery.objects.filter(endpoint=endpoint, state=DeliveryState.PENDING)
    dropped = pending.update(state=DeliveryState.FAILED, why=ENDPOINT_DISABLED, ended_at=at)
    ledger_append(
        action="webhook_endpoint.removed" if why == DisabledWhy.REMOVED else "webhook_endpoint.disabled",
        organization_id=endpoint.organization_id,
        subject_type="webhook_endpoint",
        subject_id=endpoint.id,
        actor=actor,
        at=at,
        payload={"why": why.value, "undelivered": dropped} | ({"note_sha256": note} if note else {}),
        reason_code=reason_code or CODES.get(why, ""),
    )
    return dropped
