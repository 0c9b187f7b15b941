"""A worker process for the test that kills one: works one order off and exits. Not a test."""

import sys
from uuid import UUID

import django


def main() -> int:
    django.setup()
    from django.utils import timezone

    from reasoncodes.tenancy import every_tenant
    from workflows.services.bulk_work import bulk_work

    with every_tenant():
        while bulk_work(bulk_id=UUID(sys.argv[1]), now=timezone.now, region="US"):
            pass
    return 0


if __name__ == "__main__":
    sys.exit(main())
