"""Reads webhook endpoints, secrets, deliveries and tries, and finds what is due."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import Q, QuerySet

from governance.console.selectors.pages import COUNT_LIMIT
from governance.tenancy.selectors import tenant_get
from reasoncodes.base.errors import NotFound
from workflows.webhooks.models import WebhookAttempt, WebhookDelivery, WebhookEndpoint, WebhookSecret
from workflows.webhooks.rules.delivery import PATIENCE
from workflows.webhooks.states import DisabledWhy, WebhookDeliveryState

# In SQL, because only the names are wanted: reading all documents of an organization would cost far more. A draft may
# have any shape, hence the type checks; without them jsonb_each raises.
EMITTED = """
SELECT DISTINCT step.value -> 'params' ->> 'event_name' FROM workflows_workflowdefinition d
CROSS JOIN LATERAL jsonb_each(CASE WHEN jsonb_typeof(d.definition -> 'steps') = 'object' THEN d.definition -> 'steps'
    ELSE '{}' END) step
WHERE d.organization_id = %s AND d.state <> 'archived' AND step.value ->> 'kind' = 'emit_webhook'
    AND jsonb_typeof(step.value -> 'params' -> 'event_name') = 'string'
"""
# Endpoint by endpoint, so that one with ten thousand pending deliveries does not delay the others. The recursive part
# is a loose index scan: it visits only endpoints with something pending. A failing endpoint gets one try at a time.
# Within a subject in order: an earlier delivery delays the later ones, but only for its first failures, or one bad
# event would stop all news of its run for days. "(SELECT 1 ...) IS NULL" and not NOT EXISTS: of that the planner makes
# a join that reads everything pending. Quick endpoints and the others have a limit each: hundreds that hang, with older
# deliveries, must not fill the whole answer.
DUE = """
WITH RECURSIVE waiting AS (
    (SELECT endpoint_id FROM workflows_webhookdelivery WHERE state = 'pending' ORDER BY endpoint_id LIMIT 1)
    UNION ALL
    SELECT (SELECT d.endpoint_id FROM workflows_webhookdelivery d
        WHERE d.state = 'pending' AND d.endpoint_id > w.endpoint_id ORDER BY d.endpoint_id LIMIT 1)
    FROM waiting w WHERE w.endpoint_id IS NOT NULL
)
SELECT id, endpoint_id, failures FROM (
    SELECT due.id, e.id AS endpoint_id, e.failures, due.next_try_at,
        row_number() OVER (PARTITION BY e.id = ANY (%(quick)s) ORDER BY due.next_try_at, due.id) AS place
    FROM waiting w JOIN workflows_webhookendpoint e ON e.id = w.endpoint_id
    CROSS JOIN LATERAL (
        SELECT d.id, d.next_try_at FROM workflows_webhookdelivery d
        WHERE d.endpoint_id = e.id AND d.state = 'pending' AND d.next_try_at <= %(at)s AND (
            SELECT 1 FROM workflows_webhookdelivery earlier
            WHERE earlier.endpoint_id = e.id AND earlier.subject_id = d.subject_id AND earlier.state = 'pending'
                AND earlier.number < d.number AND earlier.failures < %(patient)s LIMIT 1) IS NULL
        ORDER BY d.next_try_at, d.id LIMIT greatest(0, CASE
            WHEN e.failures > 0 THEN 1 - coalesce((%(under_way)s::jsonb ->> e.id::text)::integer, 0)
            ELSE coalesce((%(rooms)s::jsonb ->> e.id::text)::integer, %(default)s) END)
    ) due
    WHERE e.enabled AND (e.held_until IS NULL OR e.held_until <= %(at)s)
) found
WHERE place <= %(most)s ORDER BY next_try_at, id
"""

# The oldest due delivery of each endpoint, by the same loose index scan.
BEHIND = """
WITH RECURSIVE waiting AS (
    (SELECT endpoint_id FROM workflows_webhookdelivery WHERE state = 'pending' ORDER BY endpoint_id LIMIT 1)
    UNION ALL
    SELECT (SELECT d.endpoint_id FROM workflows_webhookdelivery d
        WHERE d.state = 'pending' AND d.endpoint_id > w.endpoint_id ORDER BY d.endpoint_id LIMIT 1)
    FROM waiting w WHERE w.endpoint_id IS NOT NULL
)
SELECT e.id, e.failures > 0, extract(epoch FROM %(at)s - due.next_try_at)::float8 AS seconds
FROM waiting w JOIN workflows_webhookendpoint e ON e.id = w.endpoint_id
CROSS JOIN LATERAL (
    SELECT d.next_try_at FROM workflows_webhookdelivery d
    WHERE d.endpoint_id = e.id AND d.state = 'pending' AND d.next_try_at <= %(at)s ORDER BY d.next_try_at LIMIT 1
) due
WHERE e.enabled ORDER BY seconds DESC LIMIT %(most)s
"""
MOST_BEHIND = 200  # a series each


@dataclass(frozen=True, slots=True)
class EndpointBehind:
    endpoint_id: UUID
    failing: bool
    seconds: float


def endpoints_behind(*, at: datetime) -> list[EndpointBehind]:
    """How long the oldest due delivery of each endpoint has waited, the worst first, of all organizations."""
    with connection.cursor() as cursor:
        cursor.execute(BEHIND, {"at": at, "most": MOST_BEHIND})
        return [EndpointBehind(*row) for row in cursor.fetchall()]


@dataclass(frozen=True, slots=True)
class DueDelivery:
    delivery_id: UUID
    endpoint_id: UUID
    failures: int


@dataclass(frozen=True, slots=True)
class EndpointRooms:
    """How many more deliveries each endpoint may get now; `default`: one that is not named. `quick`: those that are
    known to answer quickly. `under_way`: how many the caller has in progress."""

    default: int = 4
    rooms: Mapping[UUID, int] = field(default_factory=dict)
    quick: Sequence[UUID] = ()
    under_way: Mapping[UUID, int] = field(default_factory=dict)


def deliveries_due(*, at: datetime, most: int, rooms: EndpointRooms) -> list[DueDelivery]:
    """Deliveries of all organizations that may be sent now, the oldest first; nothing is locked. At most `most` to
    quick endpoints, and as many to others."""
    given: dict[str, Any] = {
        "at": at,
        "most": most,
        "quick": list(rooms.quick),
        "rooms": _by_id(rooms.rooms),
        "under_way": _by_id(rooms.under_way),
        "default": rooms.default,
        "patient": PATIENCE,
    }
    with connection.cursor() as cursor:
        cursor.execute(DUE, given)
        return [DueDelivery(*row) for row in cursor.fetchall()]


def _by_id(counts: Mapping[UUID, int]) -> str:
    return json.dumps({str(endpoint_id): count for endpoint_id, count in counts.items()})


def endpoint_list(*, enabled: bool | None = None) -> QuerySet[WebhookEndpoint]:
    rows = WebhookEndpoint.objects.filter(removed_at=None).order_by("-id")
    return rows if enabled is None else rows.filter(enabled=enabled)


def endpoint_get(*, endpoint_id: UUID, lock: bool = False) -> WebhookEndpoint:
    found = tenant_get(WebhookEndpoint, endpoint_id, lock=lock)
    if found.removed_at is not None:
        raise NotFound
    return found


def endpoints_enabled(*, organization_ids: Iterable[UUID] | None) -> list[WebhookEndpoint]:
    """Enabled endpoints of these organizations, or of all (None). The relay calls it with every tenant in scope."""
    rows = WebhookEndpoint.objects.filter(enabled=True).order_by("id")
    return list(rows if organization_ids is None else rows.filter(organization_id__in=list(organization_ids)))


def any_endpoint_enabled() -> bool:
    return WebhookEndpoint.objects.filter(enabled=True).exists()


def salts(*, endpoint_ids: Iterable[UUID], at: datetime) -> dict[UUID, list[bytes]]:
    """Salts of the secrets that sign now, by endpoint, the newest first."""
    rows = WebhookSecret.objects.filter(Q(ends_at=None) | Q(ends_at__gt=at), endpoint_id__in=list(endpoint_ids))
    found: dict[UUID, list[bytes]] = {}
    for endpoint_id, salt in rows.order_by("-id").values_list("endpoint_id", "salt"):
        found.setdefault(endpoint_id, []).append(bytes(salt))
    return found


def secrets_live(*, endpoint_id: UUID, at: datetime) -> list[WebhookSecret]:
    rows = WebhookSecret.objects.filter(Q(ends_at=None) | Q(ends_at__gt=at), endpoint_id=endpoint_id)
    return list(rows.order_by("-id"))


def names_emitted(*, organization_id: UUID) -> set[str]:
    """Event names that the webhook steps of the organization's definitions use, drafts included."""
    with connection.cursor() as cursor:
        cursor.execute(EMITTED, [organization_id])
        return {name for (name,) in cursor.fetchall()}


def delivery_list(
    *, endpoint_id: UUID | None = None, state: str | None = None, event_type: str | None = None
) -> QuerySet[WebhookDelivery]:
    rows = WebhookDelivery.objects.defer("body").order_by("-id")
    given = {"endpoint_id": endpoint_id, "state": state, "event_type": event_type}
    return rows.filter(**{name: value for name, value in given.items() if value is not None})


def delivery_get(*, delivery_id: UUID) -> WebhookDelivery:
    return tenant_get(WebhookDelivery, delivery_id)


def attempts_of(*, delivery_id: UUID, limit: int = 100) -> list[WebhookAttempt]:
    """The newest tries, oldest first."""
    rows = WebhookAttempt.objects.filter(delivery_id=delivery_id).order_by("-number")[:limit]
    return sorted(rows, key=lambda row: row.number)


def delivery_counts(*, endpoint_id: UUID) -> dict[str, int]:
    """Pending and failed ones, each counted up to the limit."""
    rows = WebhookDelivery.objects.filter(endpoint_id=endpoint_id).order_by()
    states = (WebhookDeliveryState.PENDING, WebhookDeliveryState.FAILED)
    return {state.value: rows.filter(state=state)[:COUNT_LIMIT].count() for state in states}


def endpoints_disabled() -> dict[str, int]:
    """How many endpoints Holdpoint itself disabled, by reason. They get nothing until somebody enables them."""
    rows = WebhookEndpoint.objects.filter(removed_at=None).order_by()
    whys = (DisabledWhy.GONE, DisabledWhy.FAILING)
    return {why.value: rows.filter(disabled_why=why)[:COUNT_LIMIT].count() for why in whys}


def endpoints_in_trouble() -> int:
    """How many endpoints are failing now, or were disabled by Holdpoint itself; for the front page."""
    bad = Q(enabled=True, failures__gt=0) | Q(disabled_why__in=[DisabledWhy.GONE, DisabledWhy.FAILING])
    return WebhookEndpoint.objects.filter(bad, removed_at=None).order_by()[:COUNT_LIMIT].count()
