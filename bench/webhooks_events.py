"""Makes the endpoints and events of the webhook benchmark, in a process of its own beside the stack.

Each event is one row for one of five endpoints that answer, and one for the endpoint that hangs, if there is one: made
as the relay makes them, in one transaction with a wake-up."""

import os
import sys
import time
from datetime import UTC, datetime

import django

NAMES = ("workflow.started", "workflow.halted", "workflow.completed", "workflow.cancelled", "workflow.intervened")


def endpoints(address: str, which: str) -> None:
    from governance.tenancy.models import Organization
    from reasoncodes.base.actors import SYSTEM
    from reasoncodes.base.tenancy import every_tenant
    from workflows.webhooks.services.endpoints import endpoint_create

    wanted = {"hang": list(NAMES)} if which == "--hang" else {f"good/{name}": [name] for name in NAMES}
    with every_tenant():
        for path, names in wanted.items():
            endpoint_create(
                actor=SYSTEM,
                at=datetime.now(UTC),
                organization_id=Organization.objects.get(slug="demo").id,
                url=f"http://{address}/{path}",
                events=names,
                private_hosts=frozenset({address}),
            )


def tell(count: int, *, first: int) -> None:
    from django.db import transaction

    from governance.tenancy.models import Organization
    from reasoncodes.base.ids import uuid7
    from reasoncodes.base.tenancy import every_tenant
    from workflows.webhooks.rules.events import body_bytes
    from workflows.webhooks.services.gather import EndpointEvent, deliveries_make

    at = datetime.now(UTC)
    with every_tenant():
        organization_id = Organization.objects.get(slug="demo").id
        made = []
        for number in range(first, first + count):
            name, subject = NAMES[number % len(NAMES)], uuid7()
            body = body_bytes(name, at.isoformat(), {"instance_id": str(subject), "made_at": time.time()})
            made.append(EndpointEvent(uuid7(), organization_id, name, subject, 1, body))
        with transaction.atomic():
            deliveries_make(made, at=at)


def steady(rate: float, seconds: float) -> int:
    began, made = time.monotonic(), 0
    while (passed := time.monotonic() - began) < seconds:
        due = int(passed * rate) - made
        if due > 0:
            tell(due, first=made)
            made += due
        time.sleep(0.01)
    return made


def main(words: list[str]) -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.local")
    django.setup()
    match words:
        case ["endpoints", address, which]:
            endpoints(address, which)
        case ["steady", rate, seconds]:
            print(steady(float(rate), float(seconds)))
        case ["burst", count]:
            tell(int(count), first=0)


if __name__ == "__main__":
    main(sys.argv[1:])
