"""Leases due deliveries and records what came of them; disables endpoints that are gone or keep failing.

A delivery is leased and its try recorded before anything is sent. If a sender dies, the lease ends and the delivery is
sent again with the same `webhook-id`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

import structlog
from django.db import connection, transaction
from django.db.models import Q

from attempts.execution.adapters.base import signed_headers
from governance.ledger.services import ledger_append
from reasoncodes.base.actors import SYSTEM, Actor
from workflows.webhooks.adapters import DELIVERED, GONE_OUTCOME, USER_AGENT, WebhookRequest, WebhookResult
from workflows.webhooks.configured import keys_of
from workflows.webhooks.models import WebhookAttempt, WebhookDelivery, WebhookEndpoint
from workflows.webhooks.rules.delivery import FAILING, hold, next_try
from workflows.webhooks.selectors import DueDelivery, EndpointRooms, deliveries_due, salts
from workflows.webhooks.states import DisabledWhy, WebhookDeliveryState

ENDPOINT_DISABLED = "endpoint_disabled"
CODES = {DisabledWhy.GONE: "webhook_gone", DisabledWhy.FAILING: "webhook_failing"}


log = structlog.get_logger("holdpoint.webhooks")
LEASE = timedelta(seconds=60)  # four times the longest exchange: a lease that ended early would send twice


@dataclass(frozen=True, slots=True)
class DeliveryJob:
    delivery_id: UUID
    endpoint_id: UUID
    attempt_id: UUID
    tries: int
    sending: WebhookRequest


def attempts_settle(*, came_back: Sequence[tuple[DeliveryJob, WebhookResult]], at: datetime) -> None:
    """Good answers together in one transaction: a commit for each would be most of the work. Every other one in a
    transaction of its own, because it also changes its endpoint."""
    good = [(job, sent) for job, sent in came_back if sent.outcome == DELIVERED]
    if good:
        _settle_good(good, at)
    for job, sent in came_back:
        if sent.outcome != DELIVERED:
            attempt_settle(delivery_id=job.delivery_id, attempt_id=job.attempt_id, tries=job.tries, sent=sent, at=at)


def _settle_good(good: Sequence[tuple[DeliveryJob, WebhookResult]], at: datetime) -> None:
    with transaction.atomic():
        # In the order of their ids, endpoints before deliveries: otherwise two senders could deadlock.
        for endpoint in _recovering([job.endpoint_id for job, _ in good]):
            _judge(endpoint, DELIVERED, None, at)
        _written_down([(job.attempt_id, sent) for job, sent in good])
        rows = WebhookDelivery.objects.filter(id__in=[job.delivery_id for job, _ in good])
        pending = rows.filter(state=WebhookDeliveryState.PENDING).order_by("id").select_for_update(no_key=True)
        ids = list(pending.values_list("id", flat=True))
        delivered = {"state": WebhookDeliveryState.DELIVERED.value, "why": DELIVERED, "ended_at": at}
        WebhookDelivery.objects.filter(id__in=ids).update(**delivered)


def _recovering(endpoint_ids: Sequence[UUID]) -> list[WebhookEndpoint]:
    """Of these endpoints, locked, those that a good answer changes."""
    # A success changes nothing at a healthy endpoint. Without this filter all deliveries to it would queue for its
    # lock.
    rows = WebhookEndpoint.objects.select_for_update(no_key=True).filter(id__in=set(endpoint_ids)).order_by("id")
    return list(rows.filter(Q(failures__gt=0) | Q(succeeded_at=None)))


def attempt_settle(*, delivery_id: UUID, attempt_id: UUID, tries: int, sent: WebhookResult, at: datetime) -> None:
    """One try that was not answered with 2xx."""
    with transaction.atomic():
        endpoint_id = WebhookDelivery.objects.values_list("endpoint_id", flat=True).get(id=delivery_id)
        # Lock order: endpoint, delivery, as in deliveries_take and redeliver; otherwise two senders could deadlock.
        endpoint = WebhookEndpoint.objects.select_for_update(no_key=True).filter(id=endpoint_id).first()
        delivery = WebhookDelivery.objects.select_for_update(no_key=True).defer("body").get(id=delivery_id)
        _written_down([(attempt_id, sent)])
        if delivery.tries == tries:  # otherwise the lease had ended and a newer try decides
            _failed(delivery, sent, at)
        if endpoint is not None:
            _judge(endpoint, sent.outcome, sent.retry_after, at)


# One statement for all: bulk_update would write a CASE for each row and column.
WRITTEN_DOWN = """
UPDATE workflows_webhookattempt a SET outcome = n.outcome, status = n.status, duration_ms = n.duration_ms,
    response_bytes = n.response_bytes, response_sha256 = n.response_sha256, truncated = n.truncated
FROM unnest(%s::uuid[], %s::text[], %s::smallint[], %s::integer[], %s::integer[], %s::text[], %s::boolean[])
    AS n (id, outcome, status, duration_ms, response_bytes, response_sha256, truncated)
WHERE a.id = n.id
"""


def _written_down(came_back: Sequence[tuple[UUID, WebhookResult]]) -> None:
    columns = zip(
        *(
            (id_, one.outcome, one.status, one.duration_ms, one.response_bytes, one.response_sha256, one.truncated)
            for id_, one in came_back
        ),
        strict=True,
    )
    with connection.cursor() as cursor:
        cursor.execute(WRITTEN_DOWN, [list(column) for column in columns])


def _failed(delivery: WebhookDelivery, sent: WebhookResult, at: datetime) -> None:
    """Count the failure and choose the next try. A try whose sender died never gets here and does not count."""
    if delivery.state != WebhookDeliveryState.PENDING:
        return
    delivery.failures, delivery.why = delivery.failures + 1, sent.outcome
    again = next_try(delivery_id=delivery.id, failures=delivery.failures, at=at)
    if again is None or sent.outcome == GONE_OUTCOME:
        delivery.state, delivery.ended_at = WebhookDeliveryState.FAILED.value, at
    delivery.next_try_at = again or at
    delivery.save(update_fields=["failures", "why", "state", "ended_at", "next_try_at"])


def _judge(endpoint: WebhookEndpoint, outcome: str, retry_after: float | None, at: datetime) -> None:
    if outcome == DELIVERED:
        endpoint.failures, endpoint.failing_since, endpoint.held_until = 0, None, None
        endpoint.succeeded_at = at
    else:
        endpoint.failures += 1
        endpoint.failing_since = endpoint.failing_since or at
        endpoint.held_until = hold(failures=endpoint.failures, at=at, retry_after=retry_after)
    endpoint.save(update_fields=["failures", "failing_since", "held_until", "succeeded_at"])
    # 410 is final: the receiver says that this address is gone, so there is no point in waiting for FAILING.
    if endpoint.enabled and outcome == GONE_OUTCOME:
        endpoint_disable_locked(endpoint, DisabledWhy.GONE, actor=SYSTEM, at=at)
    elif endpoint.enabled and endpoint.failing_since and at - endpoint.failing_since >= FAILING:
        endpoint_disable_locked(endpoint, DisabledWhy.FAILING, actor=SYSTEM, at=at)


def endpoint_disable_locked(
    endpoint: WebhookEndpoint, why: DisabledWhy, *, actor: Actor, at: datetime, reason_code: str = "", note: str = ""
) -> int:
    """Disable a locked endpoint. Its pending deliveries fail, and a person can have them sent again; returns how
    many."""
    endpoint.enabled, endpoint.disabled_why, endpoint.disabled_at, endpoint.updated_at = False, why.value, at, at
    endpoint.removed_at = at if why == DisabledWhy.REMOVED else None
    endpoint.save(update_fields=["enabled", "disabled_why", "disabled_at", "removed_at", "updated_at"])
    pending = WebhookDelivery.objects.filter(endpoint=endpoint, state=WebhookDeliveryState.PENDING)
    dropped = pending.update(state=WebhookDeliveryState.FAILED, why=ENDPOINT_DISABLED, ended_at=at)
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


def deliveries_take(
    *,
    at: datetime,
    most: int,
    private_hosts: frozenset[str],
    rooms: EndpointRooms | None = None,
    admitted: Callable[[list[DueDelivery]], list[DueDelivery]] = list,
    lease: timedelta = LEASE,
) -> list[DeliveryJob]:
    """Lease due deliveries and record their tries. `admitted`: which of them, if not all."""
    with transaction.atomic():
        due = admitted(deliveries_due(at=at, most=most, rooms=rooms or EndpointRooms()))
        if not due:
            return []
        failing = {one.endpoint_id for one in due if one.failures}
        # A failing endpoint gets one try at a time. Lock order: endpoint, delivery.
        if failing:
            WebhookEndpoint.objects.filter(id__in=failing).update(held_until=at + lease)
        # `deliveries_due` locks nothing: a delivery that another sender has taken meanwhile is skipped, or no longer
        # due.
        rows = WebhookDelivery.objects.select_for_update(no_key=True, skip_locked=True, of=("self",))
        taken = list(
            rows.filter(
                id__in=[one.delivery_id for one in due], state=WebhookDeliveryState.PENDING, next_try_at__lte=at
            ).select_related("endpoint")
        )
        known = salts(endpoint_ids={row.endpoint_id for row in taken}, at=at)
        signed = [row for row in taken if row.endpoint_id in known]
        if len(signed) < len(taken):  # nothing is sent unsigned; these stay pending
            log.error("webhook_without_secret", deliveries=len(taken) - len(signed))
        return _lease(signed, known, at, at + lease, private_hosts) if signed else []


def _lease(
    taken: list[WebhookDelivery],
    known: Mapping[UUID, list[bytes]],
    at: datetime,
    until: datetime,
    private_hosts: frozenset[str],
) -> list[DeliveryJob]:
    for row in taken:
        row.tries, row.next_try_at = row.tries + 1, until
    WebhookDelivery.objects.bulk_update(taken, ["tries", "next_try_at"])
    attempts = [_attempt(row, known[row.endpoint_id], at) for row in taken]
    WebhookAttempt.objects.bulk_create(attempts)
    return [_job(row, attempt, private_hosts) for row, attempt in zip(taken, attempts, strict=True)]


def _attempt(row: WebhookDelivery, live: list[bytes], at: datetime) -> WebhookAttempt:
    keys = keys_of(row.endpoint_id, live)
    # Signed with every live secret: during a rotation the receiver may know the old one or the new one.
    signed = signed_headers(keys=keys, message_id=str(row.event_id), at=at, body=bytes(row.body))
    headers = {"content-type": "application/json", "user-agent": USER_AGENT, **signed}
    return WebhookAttempt(delivery=row, number=row.tries, url=row.endpoint.url, headers=headers, started_at=at)


def _job(row: WebhookDelivery, attempt: WebhookAttempt, private_hosts: frozenset[str]) -> DeliveryJob:
    sending = WebhookRequest(attempt.url, bytes(row.body), attempt.headers, private_hosts)
    return DeliveryJob(row.id, row.endpoint_id, attempt.id, row.tries, sending)
