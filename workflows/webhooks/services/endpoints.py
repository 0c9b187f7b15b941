"""Webhook endpoints: create, change, enable, disable, remove, test, and rotate secrets. A secret is shown once."""

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any
from uuid import UUID

import httpx
from django.db import transaction

from governance.boundary.services import note_create, path_check, text_check
from governance.ledger.services import ledger_append
from governance.outside.http import AddressRefused, checked_address, url_check
from governance.outside.wake_up import wake_up_once
from governance.violations.services import violations_recorded
from reasoncodes.base.actors import Actor
from reasoncodes.base.errors import FieldError, InvalidInput, NotFound, WrongState
from reasoncodes.base.ids import uuid7
from reasoncodes.codes import Scope
from reasoncodes.selectors import reason_code_require
from workflows.events.rules import stamp
from workflows.webhooks.configured import new_salt, secret_of
from workflows.webhooks.models import WebhookDelivery, WebhookEndpoint, WebhookSecret
from workflows.webhooks.rules.delivery import pattern_problems
from workflows.webhooks.rules.events import TEST, body_bytes
from workflows.webhooks.selectors import endpoint_get, endpoint_list, names_emitted, secrets_live
from workflows.webhooks.services.deliver import endpoint_disable_locked
from workflows.webhooks.services.gather import TASK, EndpointEvent, delivery_row
from workflows.webhooks.states import DisabledWhy

# Every event of an organization is matched with all of its endpoints.
MOST_ENDPOINTS = 20
# The old and the new secret, during the overlap of a rotation.
LIVE_SECRETS = 2
URL_LENGTH = 500


@dataclass(frozen=True, slots=True)
class IssuedEndpoint:
    """The row, and the secret that is shown once."""

    endpoint: WebhookEndpoint
    secret: str


def endpoint_create(
    *,
    actor: Actor,
    at: datetime,
    organization_id: UUID,
    url: str,
    events: Sequence[str],
    description: str = "",
    private_hosts: frozenset[str],
) -> IssuedEndpoint:
    """Create an endpoint. It is enabled at once and gets events from now on."""
    if not actor.may_act_in(organization_id):
        raise NotFound
    with transaction.atomic():
        _check(organization_id, url=url, events=events, description=description, private_hosts=private_hosts)
        if endpoint_list().filter(organization_id=organization_id)[:MOST_ENDPOINTS].count() >= MOST_ENDPOINTS:
            raise WrongState(f"An organization has at most {MOST_ENDPOINTS} webhook endpoints. Remove one first.")
        endpoint = WebhookEndpoint(
            organization_id=organization_id,
            url=url,
            events=sorted(set(events)),
            description=description,
            created_at=at,
            updated_at=at,
        )
        endpoint.save(force_insert=True)
        secret = _secret_make(endpoint, at)
        _record(endpoint, "created", actor=actor, at=at, payload=_said(endpoint))
    return IssuedEndpoint(endpoint, secret)


@violations_recorded
def endpoint_change(
    *,
    actor: Actor,
    at: datetime,
    endpoint_id: UUID,
    private_hosts: frozenset[str],
    url: str | None = None,
    events: Sequence[str] | None = None,
    description: str | None = None,
) -> WebhookEndpoint:
    """Pending deliveries go to the new address, with the same ids and bytes."""
    with transaction.atomic():
        endpoint = _lock(actor, endpoint_id)
        changes: dict[str, Any] = {"url": url, "events": events, "description": description}
        changes = {name: value for name, value in changes.items() if value is not None}
        if not changes:
            return endpoint
        _check(endpoint.organization_id, private_hosts=private_hosts, **changes)
        for name, value in changes.items():
            setattr(endpoint, name, sorted(set(value)) if name == "events" else value)
        endpoint.updated_at = at
        endpoint.save(update_fields=[*changes, "updated_at"])
        _record(endpoint, "changed", actor=actor, at=at, payload={"fields": sorted(changes), **_said(endpoint)})
    return endpoint


@violations_recorded
def endpoint_enable(*, actor: Actor, at: datetime, endpoint_id: UUID) -> WebhookEndpoint:
    """The endpoint gets events from now on. Events of the meantime were not kept; failed deliveries can be sent
    again."""
    with transaction.atomic():
        endpoint = _lock(actor, endpoint_id)
        if endpoint.enabled:
            raise WrongState("The endpoint is enabled.")
        before = endpoint.disabled_why
        endpoint.enabled, endpoint.disabled_why, endpoint.disabled_at, endpoint.updated_at = True, "", None, at
        endpoint.failures, endpoint.failing_since, endpoint.held_until = 0, None, None
        endpoint.save()
        _record(endpoint, "enabled", actor=actor, at=at, payload={"was": before})
        wake_up_once(TASK)
    return endpoint


@violations_recorded
def endpoint_disable(
    *, actor: Actor, at: datetime, endpoint_id: UUID, reason_code: str, note: str = ""
) -> WebhookEndpoint:
    with transaction.atomic():
        endpoint = _lock(actor, endpoint_id)
        if not endpoint.enabled:
            raise WrongState("The endpoint is disabled already.")
        code, said = _reason(endpoint, reason_code, note)
        endpoint_disable_locked(endpoint, DisabledWhy.PERSON, actor=actor, at=at, reason_code=code, note=said)
    return endpoint


@violations_recorded
def endpoint_remove(*, actor: Actor, at: datetime, endpoint_id: UUID, reason_code: str = "", note: str = "") -> None:
    """Remove an endpoint and delete its secrets. Its deliveries stay readable until they are trimmed. The console asks
    for a reason; an HTTP DELETE has no body to give one in."""
    with transaction.atomic():
        endpoint = _lock(actor, endpoint_id)
        code, said = _reason(endpoint, reason_code, note) if reason_code else ("", "")
        endpoint_disable_locked(endpoint, DisabledWhy.REMOVED, actor=actor, at=at, reason_code=code, note=said)
        WebhookSecret.objects.filter(endpoint=endpoint).delete()


@violations_recorded
def endpoint_secret_rotate(*, actor: Actor, at: datetime, endpoint_id: UUID, overlap: timedelta) -> IssuedEndpoint:
    """A new secret. The old one signs too until the overlap ends, so that the receiver can change over without
    refusals."""
    with transaction.atomic():
        endpoint = _lock(actor, endpoint_id)
        live = secrets_live(endpoint_id=endpoint.id, at=at)
        # Each rotation sets the end of all live secrets anew; without a limit, repeated ones would keep old secrets
        # alive.
        if len(live) >= LIVE_SECRETS:
            raise WrongState("The last rotation's overlap is not over yet: two secrets are in force.")
        WebhookSecret.objects.filter(id__in=[one.id for one in live]).update(ends_at=at + overlap)
        WebhookSecret.objects.filter(endpoint=endpoint, ends_at__lte=at).delete()
        secret = _secret_make(endpoint, at)
        said = {"overlap_seconds": int(overlap.total_seconds())}
        _record(endpoint, "secret_rotated", actor=actor, at=at, payload=said)
    return IssuedEndpoint(endpoint, secret)


@violations_recorded
def endpoint_test(
    *, actor: Actor, at: datetime, endpoint_id: UUID, reason_code: str, note: str = ""
) -> WebhookDelivery:
    """A delivery like any other, of type `webhook.test`, with an id of its own."""
    with transaction.atomic():
        endpoint = _lock(actor, endpoint_id)
        if not endpoint.enabled:
            raise WrongState("The endpoint is disabled. Enable it first.")
        code, said = _reason(endpoint, reason_code, note)
        data = {"organization_id": str(endpoint.organization_id), "endpoint_id": str(endpoint.id)}
        body = body_bytes(TEST, stamp(at), data)
        event_id = uuid7()
        event = EndpointEvent(event_id, endpoint.organization_id, TEST, event_id, 0, body)
        delivery = delivery_row(endpoint, event, at)
        delivery.save(force_insert=True)
        payload = {"delivery": str(delivery.id)} | ({"note_sha256": said} if said else {})
        _record(endpoint, "tested", actor=actor, at=at, payload=payload, reason_code=code)
        wake_up_once(TASK)
    return delivery


def _lock(actor: Actor, endpoint_id: UUID) -> WebhookEndpoint:
    endpoint = endpoint_get(endpoint_id=endpoint_id, lock=True)
    if not actor.may_act_in(endpoint.organization_id):
        raise NotFound
    return endpoint


def _reason(endpoint: WebhookEndpoint, reason_code: str, note: str) -> tuple[str, str]:
    """The checked reason code, and the hash of the note; the note itself is not in the ledger."""
    organization_id = endpoint.organization_id
    code = reason_code_require(
        organization_id=organization_id, scope=Scope.INTERVENTION, code=reason_code, note=note
    ).code
    kept = note_create(organization_id=organization_id, text=note)
    return code, kept.sha256 if kept else ""


def _secret_make(endpoint: WebhookEndpoint, at: datetime) -> str:
    salt = new_salt()
    WebhookSecret(endpoint=endpoint, salt=salt, created_at=at).save(force_insert=True)
    return secret_of(endpoint.id, salt)


def _check(
    organization_id: UUID,
    *,
    private_hosts: frozenset[str],
    url: str | None = None,
    events: Sequence[str] | None = None,
    description: str | None = None,
) -> None:
    found = url_problems(url, private_hosts=private_hosts) if url is not None else []
    if events is not None:
        found += pattern_problems(events, emitted=names_emitted(organization_id=organization_id))
    if found:
        raise InvalidInput(errors=found)
    text_check(text=description or "", pointer="/description")
    path_check(path=httpx.URL(url).raw_path.decode("ascii", "replace") if url else "", pointer="/url")


def url_problems(url: str, *, private_hosts: frozenset[str]) -> list[FieldError]:
    """Problems that are visible without resolving the host name."""
    # The name is resolved and checked when the socket is opened, every time: what it resolves to can change after this
    # check.
    try:
        url_check(url, private_hosts=private_hosts)
        parsed = httpx.URL(url)
        if _is_address(parsed.host):
            checked_address(parsed.host, parsed.port or 443, private_hosts=private_hosts)
    except (AddressRefused, OSError):
        return [FieldError("/url", "must be an https URL of a public host, without credentials", rule="url")]
    if parsed.fragment or len(url) > URL_LENGTH:
        return [FieldError("/url", f"must have no fragment and at most {URL_LENGTH} characters", rule="url")]
    return []


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True


def _said(endpoint: WebhookEndpoint) -> dict[str, Any]:
    """What the ledger says about an endpoint."""
    # The URL by its hash: a path may contain a secret.
    hashed = sha256(endpoint.url.encode()).hexdigest()
    return {"url_sha256": hashed, "events": endpoint.events, "enabled": endpoint.enabled}


def _record(
    endpoint: WebhookEndpoint,
    what: str,
    *,
    actor: Actor,
    at: datetime,
    payload: dict[str, Any],
    reason_code: str = "",
) -> None:
    ledger_append(
        action=f"webhook_endpoint.{what}",
        organization_id=endpoint.organization_id,
        subject_type="webhook_endpoint",
        subject_id=endpoint.id,
        actor=actor,
        at=at,
        payload=payload,
        reason_code=reason_code,
    )
