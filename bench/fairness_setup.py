"""Makes organizations with an open contract that calls a receiver over HTTP, and prints a key of each."""

import json
import os
import sys

import django


def main(count: int) -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.local")
    django.setup()
    from governance.tenancy.models import Organization
    from reasoncodes.base.tenancy import every_tenant
    from tests.attempts.execution.support import contract
    from tests.cast import Cast
    from tests.factories import OrganizationFactory

    keys = []
    with every_tenant():
        for number in range(count):
            tenant = Cast()
            tenant.organization = OrganizationFactory(slug=f"tenant-{number}")  # type: ignore[misc]
            Organization.objects.filter(id=tenant.organization.id).update(max_concurrency=5_000)
            contract(tenant, slug="calls", effect="idempotent")
            keys.append(tenant.key("attempts:create"))
    print(json.dumps(keys))


if __name__ == "__main__":
    main(int(sys.argv[1]))
