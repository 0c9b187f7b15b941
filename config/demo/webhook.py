"""The demo's webhook endpoint: one for everything, when HOLDPOINT_DEMO_WEBHOOK names a receiver."""

from datetime import datetime

from governance.models import Organization
from reasoncodes.actors import SYSTEM
from workflows.selectors.webhook import endpoint_list, secrets_live
from workflows.services.webhook_endpoint import endpoint_create, endpoint_enable
from workflows.webhooks.secrets import secret_of
from workflows.webhooks.targets import demo_webhook, webhook_private_hosts


def webhook_ensure(*, organization: Organization, at: datetime) -> dict[str, str] | None:
    """Its URL and secret. The secret is derived again: this is the one door that tells it twice."""
    url = demo_webhook()
    if not url:
        return None
    found = endpoint_list().filter(organization_id=organization.id, url=url).first()
    if found is None:
        made = endpoint_create(
            actor=SYSTEM,
            at=at,
            organization_id=organization.id,
            url=url,
            events=["*"],
            description="Demo receiver",
            private_hosts=webhook_private_hosts(),
        )
        return {"url": url, "secret": made.secret}
    if not found.enabled:
        endpoint_enable(actor=SYSTEM, at=at, endpoint_id=found.id)
    newest = secrets_live(endpoint_id=found.id, at=at)[0]
    return {"url": url, "secret": secret_of(found.id, bytes(newest.salt))}
