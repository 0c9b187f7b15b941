"""Creates, disables and enables notification routes, each with a ledger entry, and stops and resumes their messages."""

import re
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import QuerySet

from attempts.notify.models import ChatWorkspace, Notification, NotificationRoute
from attempts.notify.selectors import workspace_get
from attempts.notify.states import NotificationState, NotifyChannel, RouteState
from governance.boundary.services import note_create
from governance.contracts.rules.documents import OWNER_GROUPS
from governance.ledger.services import ledger_append
from governance.outside.wake_up import wake_up_once
from governance.policies.selectors import reviewer_tiers
from governance.tenancy.models import Organization
from governance.tenancy.selectors import tenant_get
from reasoncodes.base.actors import Actor
from reasoncodes.base.errors import AlreadyExists, FieldError, InvalidInput, NotFound, WrongState
from reasoncodes.codes import Scope
from reasoncodes.selectors import reason_code_require

SEND = "attempts.tasks.notify.notifications_send"
SLUG = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
LONGEST_DIGEST = 7 * 24 * 60


def route_create(
    *,
    actor: Actor,
    at: datetime,
    organization: Organization,
    channel: NotifyChannel,
    base_url: str,
    contract_slug: str = "",
    tier: str = "",
    workspace_id: UUID | None = None,
    chat_channel: str = "",
    digest_minutes: int = 0,
) -> NotificationRoute:
    """Creates a route for reviews from now on. `base_url`: where links in messages lead."""
    if not actor.may_act_in(organization.id):
        raise NotFound
    route = NotificationRoute(
        organization=organization,
        channel=NotifyChannel(channel).value,
        contract_slug=contract_slug,
        tier=tier,
        workspace=_workspace(organization, workspace_id),
        chat_channel=chat_channel,
        digest_minutes=digest_minutes,
        created_at=at,
    )
    _check(route, base_url)
    try:
        with transaction.atomic():
            route.save(force_insert=True)
            _record(route, "notification_route.created", actor=actor, at=at)
    except IntegrityError as error:
        raise AlreadyExists("There is already an active route for these reviews to this receiver.") from error
    return route


def _workspace(organization: Organization, workspace_id: UUID | None) -> ChatWorkspace | None:
    if workspace_id is None:
        return None
    workspace = workspace_get(workspace_id=workspace_id)
    if workspace.organization_id != organization.id:
        raise NotFound
    return workspace


def _check(route: NotificationRoute, base_url: str) -> None:
    # An owner group stands for the quarantine cases that its contracts send to it.
    tiers = [*reviewer_tiers(organization_id=route.organization_id), *OWNER_GROUPS]
    slack = route.channel == NotifyChannel.SLACK
    rules = (
        (bool(base_url), "", "HOLDPOINT_PUBLIC_URL is not set: messages would carry no link"),
        (route.workspace is not None or not slack, "/workspace_id", "is required for Slack"),
        (bool(route.chat_channel) or not slack, "/chat_channel", "is required for Slack"),
        (slack or route.workspace is None, "/workspace_id", "is for Slack: mail goes to the reviewers who may decide"),
        (slack or not route.chat_channel, "/chat_channel", "is for Slack: mail goes to the reviewers who may decide"),
        (not slack or not route.digest_minutes, "/digest_minutes", "is for mail: a card stands for one review"),
        (0 <= route.digest_minutes <= LONGEST_DIGEST, "/digest_minutes", f"must be between 0 and {LONGEST_DIGEST}"),
        (not route.contract_slug or _is_slug(route.contract_slug), "/contract_slug", "is not a contract's slug"),
        (not route.tier or route.tier in tiers, "/tier", f"one of: {', '.join(tiers)}"),
    )
    errors = [FieldError(pointer, words) for holds, pointer, words in rules if not holds]
    if errors:
        raise InvalidInput(errors=errors)


def _is_slug(text: str) -> bool:
    return SLUG.fullmatch(text) is not None


def route_disable(*, actor: Actor, at: datetime, route_id: UUID, reason_code: str, note: str = "") -> NotificationRoute:
    """Disables a route as an operator. Its waiting messages are kept, and sent when the route is enabled again."""
    with transaction.atomic():
        route = _lock(actor, route_id)
        if route.state != RouteState.ACTIVE:
            raise WrongState("This route is disabled already.")
        facts = reason_facts(organization_id=route.organization_id, reason_code=reason_code, note=note)
        _disable(route, reason_code, actor=actor, at=at, reason_code=reason_code, **facts)
    return route


def route_refused(*, actor: Actor, at: datetime, route_id: UUID, why: str) -> None:
    """Disables a route whose receiver refuses everything. A person must fix and enable it."""
    with transaction.atomic():
        route = _lock(actor, route_id)
        # Several messages may report the same refusal; only the first one changes anything.
        if route.state == RouteState.ACTIVE:
            _disable(route, why, actor=actor, at=at)


def route_enable(*, actor: Actor, at: datetime, route_id: UUID) -> NotificationRoute:
    try:
        with transaction.atomic():
            route = _lock(actor, route_id)
            if route.state == RouteState.ACTIVE:
                raise WrongState("This route is active.")
            route.state, route.disabled_reason, route.disabled_at = RouteState.ACTIVE.value, "", None
            route.save(update_fields=["state", "disabled_reason", "disabled_at"])
            rows_resume(route_ids=[route.id], at=at)
            _record(route, "notification_route.enabled", actor=actor, at=at)
    except IntegrityError as error:
        raise AlreadyExists("There is already an active route for these reviews to this receiver.") from error
    return route


def rows_change(rows: QuerySet[Notification], **changes: Any) -> None:
    """Changes those of the rows that no other transaction has locked."""
    with transaction.atomic():
        # SKIP LOCKED against deadlocks: a vote locks its review and then waits for its cards. Whoever has locked cards
        # must therefore not wait for anything that a vote may have locked.
        free = rows.select_for_update(no_key=True, of=("self",), skip_locked=True).order_by()
        ids = list(free.values_list("id", flat=True))
        Notification.objects.filter(id__in=ids).update(**changes)


def rows_stop(*, route_ids: list[UUID]) -> None:
    """Stops waiting messages. One that is skipped here stops just before it would be sent."""
    waiting = Notification.objects.filter(route__in=route_ids, state=NotificationState.PENDING)
    rows_change(waiting, state=NotificationState.STOPPED, leased_until=None)


def rows_resume(*, route_ids: list[UUID], at: datetime) -> None:
    Notification.objects.filter(route__in=route_ids, state=NotificationState.STOPPED).update(
        state=NotificationState.PENDING, next_try_at=at, tries=0
    )
    wake_up_once(SEND)


def reason_facts(*, organization_id: UUID, reason_code: str, note: str) -> dict[str, str]:
    """Checks an operator's reason and stores the note. The ledger entry gets only the note's id and hash."""
    reason_code_require(organization_id=organization_id, scope=Scope.INTERVENTION, code=reason_code, note=note)
    stored = note_create(organization_id=organization_id, text=note)
    return {"note": str(stored.id), "note_sha256": stored.sha256} if stored else {}


def _disable(
    route: NotificationRoute, why: str, *, actor: Actor, at: datetime, reason_code: str = "", **more: str
) -> None:
    route.state, route.disabled_reason, route.disabled_at = RouteState.DISABLED.value, why, at
    route.save(update_fields=["state", "disabled_reason", "disabled_at"])
    rows_stop(route_ids=[route.id])
    _record(route, "notification_route.disabled", actor=actor, at=at, reason_code=reason_code, reason=why, **more)


def _lock(actor: Actor, route_id: UUID) -> NotificationRoute:
    route = tenant_get(NotificationRoute, route_id, lock=True)
    if not actor.may_act_in(route.organization_id):
        raise NotFound
    return route


def _record(
    route: NotificationRoute, action: str, *, actor: Actor, at: datetime, reason_code: str = "", **more: str
) -> None:
    ledger_append(
        action=action,
        organization_id=route.organization_id,
        subject_type="notification_route",
        subject_id=route.id,
        actor=actor,
        at=at,
        payload={"channel": route.channel, "contract": route.contract_slug, "tier": route.tier, **more},
        reason_code=reason_code,
    )
