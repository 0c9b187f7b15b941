"""`demo_seed`: creates what is missing and returns everything that a newcomer or a black-box test needs."""

from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import connection, transaction

from config.demo.contracts import contracts_ensure
from config.demo.held import held_ensure
from config.demo.identity import PEOPLE, SERVICES, organization_ensure, people_ensure, service_ensure
from config.demo.modules import modules_ensure
from config.demo.secrets import DemoSecrets
from config.demo.webhook import webhook_ensure
from config.demo.workflows import definitions_ensure, event_example
from config.env import runtime
from governance.contracts.rules.starters import attempt_example
from governance.people.models import ApiKey
from governance.people.selectors.people import credential_for_secret
from governance.people.services.accounts import api_key_issue, api_key_revoke
from governance.tenancy.models import Organization
from reasoncodes.base.actors import SYSTEM
from reasoncodes.base.tenancy import every_tenant

LOCK = 0x484F4C44  # an advisory lock: two demos at once would each create what the other one is creating


def demo_seed(*, at: datetime, secrets: DemoSecrets) -> dict[str, Any]:
    """Idempotent. Everything goes through the same services as at any other entry point."""
    with every_tenant(), transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK])
        # Under the lock: an earlier demo may have written keys since this process read the file.
        secrets.load()
        organization = organization_ensure(slug="demo", name="Demo Dermatology", at=at)
        other = organization_ensure(slug="other", name="Other Clinic", at=at)
        usernames = [*PEOPLE, "admin"]
        people_ensure(organization=organization, secrets=secrets, at=at)
        keys = {name: _key(organization, name, scopes, secrets, at) for name, scopes in SERVICES.items()}
        keys["other_caller"] = _key(other, "other_caller", SERVICES["caller"], secrets, at)
        contracts = contracts_ensure(organization=organization, at=at)
        modules_ensure(organization=organization, at=at)
        definitions = definitions_ensure(organization=organization, at=at)
        event = event_example(organization=organization, at=at)
        webhook = webhook_ensure(organization=organization, at=at)
        # Before the commit: if the file cannot be written, the keys are rolled back. A key whose clear text is lost is
        # of no use.
        secrets.save()
    base_url = runtime().get("base_url") or settings.DEMO_BASE_URL
    held_ensure(organization=organization, key=keys["caller"], contracts=contracts, base_url=base_url, at=at)
    return {
        "base_url": base_url,
        "organization": {"id": str(organization.id), "slug": organization.slug},
        "other_organization": {"id": str(other.id), "slug": other.slug},
        "users": {name: {"username": name, "password": secrets.password(name)} for name in usernames},
        "keys": keys,
        "contracts": contracts,
        "definitions": definitions,
        "attempt_example": attempt_example(),
        "event_example": event,
        **({"webhook": webhook} if webhook else {}),
    }


def _key(organization: Organization, name: str, scopes: tuple[str, ...], secrets: DemoSecrets, at: datetime) -> str:
    """The remembered key while it is live and has these scopes, else a new one."""
    account = service_ensure(organization=organization, slug=name.replace("_", "-"), at=at)
    known = secrets.key(name)
    credential = credential_for_secret(secret=known, at=at) if known else None
    if known and credential and credential.actor.scopes == frozenset(scopes) and credential.actor.id == account.id:
        return known
    for key in ApiKey.objects.filter(service_account=account, revoked_at=None):
        api_key_revoke(actor=SYSTEM, at=at, key_id=key.id)
    issued = api_key_issue(actor=SYSTEM, at=at, service_account=account, scopes=scopes)
    secrets.remember_key(name, issued.secret)
    return issued.secret
