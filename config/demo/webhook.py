"""The demo's webhook endpoint: one for all events, if HOLDPOINT_DEMO_WEBHOOK names a receiver."""

from datetime import datetime

from governance.tenancy.models import Organization
from reasoncodes.base.actors import SYSTEM
from workflows.webhooks.configured import demo_webhook, secret_of, webhook_private_hosts
from workflows.webhooks.models import WebhookEndpoint
from workflows.webhooks.selectors import endpoint_list, secrets_live
from workflows.webhooks.services.endpoints import endpoint_create, endpoint_enable

NAME = "Demo receiver"


def webhook_ensure(*, organization: Organization, at: datetime) -> dict[str, str] | None:
    """Its URL and secret. Without the variable, it returns the endpoint that another process with the variable
    created."""
    rows, url = endpoint_list().filter(organization_id=organization.id, description=NAME), demo_webhook()
    if not url:
        known = rows.filter(enabled=True).first()
        return _told(known, at) if known else None
    found = rows.filter(url=url).first()
    if found is None:
        made = endpoint_create(
            actor=SYSTEM,
            at=at,
            organization_id=organization.id,
            url=url,
            events=["*"],
            description=NAME,
            private_hosts=webhook_private_hosts(),
        )
        return {"url": url, "secret": made.secret}
    if not found.enabled:
        endpoint_enable(actor=SYSTEM, at=at, endpoint_id=found.id)
    return _told(found, at)


def _told(endpoint: WebhookEndpoint, at: datetime) -> dict[str, str]:
    """Derives the secret again. Only the demo shows a secret more than once."""
    newest = secrets_live(endpoint_id=endpoint.id, at=at)[0]
    return {"url": endpoint.url, "secret": secret_of(endpoint.id, bytes(newest.salt))}
