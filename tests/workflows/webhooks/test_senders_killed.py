"""Senders killed with -9 again and again: nothing is lost, what comes twice has the same id, and nothing comes before
what happened earlier to the same subject."""

import json
import random
import time
from collections import Counter, defaultdict
from datetime import timedelta
from multiprocessing.process import BaseProcess

import pytest
from django.utils import timezone
from standardwebhooks import Webhook

from bench.record import record
from reasoncodes.base.ids import uuid7
from reasoncodes.base.tenancy import every_tenant
from tests.processes import start
from tests.workflows.webhooks.support import Hooks
from workflows.webhooks.models import WebhookAttempt, WebhookDelivery
from workflows.webhooks.services.sender import deliveries_send

LEASE = 1.0


class Senders:
    """Two at once; each that is killed has a successor."""

    def __init__(self, hooks: Hooks) -> None:
        self.hosts = frozenset(hooks.hosts)
        self.alive: list[BaseProcess] = []
        self.killed = 0

    def start(self) -> None:
        self.alive.append(start(send, self.hosts, environment={"LOG_LEVEL": "ERROR"}))

    def kill_one(self) -> None:
        self.alive.pop(random.randrange(len(self.alive))).kill()
        self.killed += 1
        self.start()

    def stop(self) -> None:
        for process in self.alive:
            process.kill()


def send(hosts: frozenset[str]) -> None:
    with every_tenant():
        while True:
            deliveries_send(now=timezone.now, private_hosts=hosts, lease=timedelta(seconds=LEASE), senders=2)


def pending() -> int:
    with every_tenant():
        return WebhookDelivery.objects.filter(state="pending").count()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("subjects", "each", "kills", "seconds"),
    [(12, 6, 6, 40), pytest.param(500, 20, 400, 900, marks=[pytest.mark.soak, pytest.mark.timeout(1200)])],
)
def test_nothing_is_lost_doubled_under_another_id_or_out_of_order(
    hooks: Hooks, subjects: int, each: int, kills: int, seconds: int
) -> None:
    secret = hooks.endpoint().secret
    events = subjects * each
    assert hooks.tell([uuid7() for _ in range(subjects)], each=each) == events
    senders, began = Senders(hooks), time.monotonic()
    try:
        senders.start()
        senders.start()
        while pending():
            assert time.monotonic() - began < seconds, f"{pending()} of {events} still pending"
            seen = len(hooks.target.requests)
            time.sleep(0.25)
            if len(hooks.target.requests) > seen and senders.killed < kills:
                senders.kill_one()
    finally:
        senders.stop()
    took = time.monotonic() - began
    came = [(one["headers"]["webhook-id"], one["raw"]) for one in hooks.target.requests]
    with every_tenant():
        ids = {str(one) for one in WebhookDelivery.objects.values_list("event_id", flat=True)}
        died = WebhookAttempt.objects.filter(outcome="").count()
        assert set(WebhookDelivery.objects.values_list("state", flat=True)) == {"delivered"}
    assert {identity for identity, _ in came} == ids  # none lost, none under another id
    assert len(ids) == events
    bodies = defaultdict(set)
    for identity, raw in came:
        bodies[identity].add(raw)
    assert {len(found) for found in bodies.values()} == {1}  # what came twice came in the same bytes
    order = defaultdict(list)
    for _, raw in came:
        data = json.loads(raw)["data"]
        order[data["instance_id"]].append(data["number"])
    for numbers in order.values():
        assert numbers == sorted(numbers)
        assert set(numbers) == set(range(1, each + 1))
    Webhook(secret).verify(came[-1][1], hooks.target.requests[-1]["headers"])
    doubled = sum(count - 1 for count in Counter(identity for identity, _ in came).values())
    assert senders.killed >= 3
    assert died >= 1  # the kills really hit senders at work
    figures = {"events": events, "killed": senders.killed, "died_sending": died, "came_twice": doubled}
    if events >= 10_000:
        record(name="soak webhook senders killed", figures=figures | {"seconds": round(took, 1)})
