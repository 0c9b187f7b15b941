"""A process for the test that kills senders: forks one for every line that it reads, and prints its process id. Loaded
once, so that a sender that is killed is replaced within milliseconds. Not a test."""

import json
import os
import signal
import sys
from datetime import timedelta
from typing import Any

import django


def main() -> int:
    django.setup()
    import workflows.tasks  # noqa: F401 - everything that a sender needs is loaded here

    order: dict[str, Any] = json.loads(sys.stdin.readline())
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the killed
    for _ in sys.stdin:
        child = os.fork()
        if child == 0:
            work(order)
        print(child, flush=True)  # noqa: T201 - its answer
    return 0


def work(order: dict[str, Any]) -> None:
    from django.utils import timezone

    from reasoncodes.tenancy import every_tenant
    from workflows.services.webhook_deliver import deliveries_send

    with every_tenant():
        while True:
            deliveries_send(
                now=timezone.now,
                private_hosts=frozenset(order["hosts"]),
                turn=5.0,
                lease=timedelta(seconds=order["lease"]),
                senders=2,
            )
            if os.getppid() == 1:
                os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
