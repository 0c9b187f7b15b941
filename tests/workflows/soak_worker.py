"""A process of the soak run: creates its share of the cases and answers requests as the simulated modules would, from
the streams, through `event_receive`. Goes on until its standard input is closed; prints its counts. Not a test."""

import json
import os
import select
import sys
from collections import Counter
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import django

CREATED_AT_ONCE = 10
STREAMS = ("consent.check.requested", "case.images_check.requested", "ai_review.requested", "case.workflow.completed")


class Worker:
    def __init__(self, order: dict[str, Any]) -> None:
        from django.conf import settings

        from reasoncodes.base.actors import Actor, ActorKind
        from sdk.simulator.behaviour import Behaviour
        from sdk.simulator.streams import Streams

        self.order, self.left = order, order["cases"]
        self.counts: Counter[str] = Counter()
        self.answered: set[str] = set()
        self.behaviour = Behaviour(**order["behaviour"])
        self.actor = Actor(
            ActorKind.SERVICE,
            UUID(order["account"]),
            frozenset({UUID(order["organization"])}),
            frozenset({"orchestrator:write"}),
        )
        # Nothing is reclaimed: a worker that died would be the soak's failure.
        self.streams = Streams(url=settings.REDIS_URL, event_types=STREAMS, consumer=f"soak-{os.getpid()}")
        self.streams.prepare()

    def round(self) -> None:
        from sdk.simulator.answers import replies

        entries = self.streams.read(count=100, block_ms=50)
        fresh = [entry for entry in entries if self._is_new(entry.envelope)]
        planned = [reply for one in fresh for reply in replies(one.envelope, self.behaviour, at=datetime.now(UTC))]
        for reply in sorted(planned, key=lambda reply: reply.after):  # in the order of their delays, without waiting
            self.send(reply.envelope)
        for entry in entries:
            self.streams.acknowledge(entry)
        if len(entries) < 100:
            self._create()

    def _is_new(self, request: dict[str, Any]) -> bool:
        """As a module does: by correlation id. The same request may reach another worker; its answer is the same."""
        if request["correlation_id"] in self.answered:
            self.counts["repeated_requests"] += 1
            return False
        self.answered.add(request["correlation_id"])
        return True

    def send(self, envelope: dict[str, Any]) -> None:
        from django.utils import timezone

        from workflows.events.services.receive import event_receive

        received = event_receive(envelope=envelope, actor=self.actor, at=timezone.now(), region="US")
        self.counts["duplicates" if received.duplicate else received.event.outcome] += 1

    def _create(self) -> None:
        for _ in range(min(self.left, CREATED_AT_ONCE)):
            self.left -= 1
            self.send(
                {
                    "event_id": str(uuid4()),
                    "event_type": "case.created",
                    "schema_version": "v1",
                    "occurred_at": datetime.now(UTC).isoformat(),
                    "correlation_id": str(uuid4()),
                    "case_id": str(uuid4()),
                    "org_id": self.order["organization"],
                    "product_id": self.order["product"],
                    "payload": {"patient_id": "pat-1"},
                }
            )


def main() -> int:
    django.setup()
    from reasoncodes.base.tenancy import every_tenant

    worker = Worker(json.loads(sys.stdin.readline()))
    with every_tenant():
        while not select.select([sys.stdin], [], [], 0)[0]:
            worker.round()
    print(json.dumps(worker.counts))  # noqa: T201 - its report
    return 0


if __name__ == "__main__":
    sys.exit(main())
