"""A worker process for the tests that kill one: dispatches one attempt and exits. Not a test."""

import json
import os
import sys
from uuid import UUID

import django


def main() -> int:
    django.setup()
    from django.conf import settings
    from django.utils import timezone

    from attempts.services.dispatch import attempt_dispatch

    for name, value in json.loads(os.environ["WORKER_SETTINGS"]).items():
        setattr(settings, name, value)
    print("ready", flush=True)  # noqa: T201
    attempt_dispatch(attempt_id=UUID(sys.argv[1]), now=timezone.now)
    return 0


if __name__ == "__main__":
    sys.exit(main())
