"""Sends due deliveries and records the results; disables endpoints that are gone or keep failing.

A delivery is leased and its try recorded before anything is sent. If a sender dies, the lease ends and the delivery is
sent again with the same `webhook-id`."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

import structlog
from django.db import connection, transaction
from django.db.models import Q

from attempts.execution.adapters.base import signed_headers
from governance.ledger.services import ledger_append
from governance.outside.wake_up import wake_up_once, wake_up_received
from reasoncodes.base.actors import SYSTEM, Actor
from workflows.runs.services.metrics import WEBHOOK_SECONDS, WEBHOOKS
from workflows.webhooks.adapters import DELIVERED, GONE_OUTCOME, USER_AGENT, WebhookRequest, WebhookResult, webhook_send
from workflows.webhooks.configured import keys_of
from workflows.webhooks.models import WebhookAttempt, WebhookDelivery, WebhookEndpoint
from workflows.webhooks.rules.delivery import FAILING, hold, next_try
from workflows.webhooks.selectors import deliveries_due, salts
from workflows.webhooks.services.gather import TASK
from workflows.webhooks.states import DisabledWhy, WebhookDeliveryState

ENDPOINT_DISABLED = "endpoint_disabled"
CODES = {DisabledWhy.GONE: "webhook_gone", DisabledWhy.FAILING: "webhook_failing"}


def attempt_settle(*, delivery_id: UUID, attempt_id: UUID, tries: int, sent: WebhookResult, at: datetime) -> None:
    with transaction.atomic():
        endpoint_id = WebhookDelivery.objects.values_list("endpoint_id", flat=True).get(id=delivery_id)
        good = sent.outcome == DELIVERED
        # Lock order: endpoint, delivery, as in deliveries_take and redeliver; otherwise two senders could deadlock.
        endpoint = _endpoint_lock(endpoint_id, good=good)
        delivery = WebhookDelivery.objects.select_for_update(no_key=True).defer("body").get(id=delivery_id)
        _write_down(attempt_id, sent)
        if good:
            _delivered(delivery, at)
        elif delivery.tries == tries:  # otherwise the lease had ended and a newer try decides
            _failed(delivery, sent, at)
        if endpoint is not None:
            _judge(endpoint, sent, at)


def _endpoint_lock(endpoint_id: UUID, *, good: bool) -> WebhookEndpoint | None:
    """The endpoint's row, locked; None if this result does not change it."""
    # A success changes nothing at a healthy endpoint. Without this filter all deliveries to it would queue for its
    # lock.
    rows = WebhookEndpoint.objects.select_for_update(no_key=True).filter(id=endpoint_id)
    return (rows.filter(Q(failures__gt=0) | Q(succeeded_at=None)) if good else rows).first()


def _write_down(attempt_id: UUID, sent: WebhookResult) -> None:
    WebhookAttempt.objects.filter(id=attempt_id).update(
        outcome=sent.outcome,
        status=sent.status,
        duration_ms=sent.duration_ms,
        response_bytes=sent.response_bytes,
        response_sha256=sent.response_sha256,
        truncated=sent.truncated,
    )


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


def _delivered(delivery: WebhookDelivery, at: datetime) -> None:
    if delivery.state == WebhookDeliveryState.PENDING:
        delivery.state, delivery.why, delivery.ended_at = WebhookDeliveryState.DELIVERED.value, DELIVERED, at
        delivery.save(update_fields=["state", "why", "ended_at"])


def _judge(endpoint: WebhookEndpoint, sent: WebhookResult, at: datetime) -> None:
    if sent.outcome == DELIVERED:
        endpoint.failures, endpoint.failing_since, endpoint.held_until = 0, None, None
        endpoint.succeeded_at = at
    else:
        endpoint.failures += 1
        endpoint.failing_since = endpoint.failing_since or at
        endpoint.held_until = hold(failures=endpoint.failures, at=at, retry_after=sent.retry_after)
    endpoint.save(update_fields=["failures", "failing_since", "held_until", "succeeded_at"])
    # 410 is final: the receiver says that this address is gone, so there is no point in waiting for FAILING.
    if endpoint.enabled and sent.outcome == GONE_OUTCOME:
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


log = structlog.get_logger("holdpoint.webhooks")
LEASE = timedelta(seconds=60)  # four times the longest exchange: a lease that ended early would send twice
THREADS = 8
EACH = 4  # at once to one endpoint: a slow receiver must leave threads for the others
TURN = 20.0  # seconds; then the worker is free for another task


@dataclass(frozen=True, slots=True)
class DeliveryJob:
    delivery_id: UUID
    endpoint_id: UUID
    attempt_id: UUID
    tries: int
    sending: WebhookRequest


def deliveries_send(
    *,
    now: Callable[[], datetime],
    private_hosts: frozenset[str],
    senders: int = 1,
    turn: float = TURN,
    lease: timedelta = LEASE,
) -> int:
    """Send until nothing is due or the turn is over; returns the number of tries. At most `senders` run in the
    installation, so that slow receivers cannot take all workers."""
    wake_up_received(TASK)
    with _sender_slot(senders) as found:
        if not found:
            return 0
        sender = _Sender(now, private_hosts, lease)
        over = sender.run(until=time.monotonic() + turn)
    if over:
        wake_up_once(TASK)
    return sender.tries


class _Sender:
    """HTTP in threads; the database only in the thread that runs the task, because connections belong to a thread."""

    def __init__(self, now: Callable[[], datetime], private_hosts: frozenset[str], lease: timedelta) -> None:
        self.now = now
        self.private_hosts = private_hosts
        self.lease = lease
        self.running: dict[Future[WebhookResult], DeliveryJob] = {}
        self.tries = 0

    def run(self, *, until: float) -> bool:
        """True: the turn is over, and there may be more to send."""
        with ThreadPoolExecutor(THREADS, thread_name_prefix="webhook") as pool:
            while True:
                over = time.monotonic() >= until
                # Not for every free thread: each look for due deliveries is a query.
                if not over and len(self.running) <= THREADS // 2:
                    self._start(pool)
                if not self.running:
                    return over
                self._settle()

    def _start(self, pool: ThreadPoolExecutor) -> None:
        under_way = Counter(job.endpoint_id for job in self.running.values())
        for job in deliveries_take(
            at=self.now(),
            most=THREADS - len(self.running),
            private_hosts=self.private_hosts,
            under_way=under_way,
            lease=self.lease,
        ):
            self.running[pool.submit(webhook_send, job.sending)] = job

    def _settle(self) -> None:
        """Record what is finished. Waits at most a second, so that new deliveries are not delayed by slow receivers."""
        done, _ = wait(self.running, timeout=1.0, return_when=FIRST_COMPLETED)
        for future in done:
            job, sent = self.running.pop(future), future.result()
            attempt_settle(
                delivery_id=job.delivery_id, attempt_id=job.attempt_id, tries=job.tries, sent=sent, at=self.now()
            )
            WEBHOOKS.labels(sent.outcome).inc()
            WEBHOOK_SECONDS.observe(sent.duration_ms / 1000)
            self.tries += 1


def deliveries_take(
    *,
    at: datetime,
    most: int,
    private_hosts: frozenset[str],
    under_way: Mapping[UUID, int] | None = None,
    lease: timedelta = LEASE,
) -> list[DeliveryJob]:
    """Lease due deliveries and record their tries."""
    with transaction.atomic():
        due = deliveries_due(at=at, each=EACH, most=most, under_way=under_way or {})
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


@contextmanager
def _sender_slot(senders: int) -> Iterator[bool]:
    """One of the sender slots, if one is free."""
    # Session advisory locks: PostgreSQL releases the slot of a killed sender together with its connection.
    taken = next((place for place in range(senders) if _advisory("pg_try_advisory_lock", place)), None)
    try:
        yield taken is not None
    finally:
        if taken is not None:
            _advisory("pg_advisory_unlock", taken)


def _advisory(function: str, place: int) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {function}(hashtextextended(%s, 7))", [f"webhook-sender:{place}"])
        return bool(cursor.fetchone()[0])
