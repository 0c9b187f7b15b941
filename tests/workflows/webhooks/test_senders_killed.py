"""Senders killed with -9 again and again: nothing is lost, what comes twice has the same id, and nothing comes before
what happened earlier to the same subject."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from contextlib import suppress
from urllib.parse import urlsplit

import pytest
from django.conf import settings
from django.db import connection
from standardwebhooks import Webhook

from bench.record import record
from config.env import BASE_DIR
from reasoncodes.ids import uuid7
from reasoncodes.tenancy import every_tenant
from tests.workflows.webhooks.support import Hooks
from workflows.models import WebhookAttempt, WebhookDelivery

LEASE = 1.0


class Senders:
    """Two at once; each that is killed has a successor."""

    def __init__(self, hooks: Hooks) -> None:
        database = urlsplit(os.environ["DATABASE_URL"])._replace(path=f"/{connection.settings_dict['NAME']}").geturl()
        environment = os.environ | {
            "DJANGO_SETTINGS_MODULE": "config.settings.test",
            "DATABASE_URL": database,
            "SECRET_KEY": settings.SECRET_KEY,
            "PYTHONPATH": str(BASE_DIR),
            "LOG_LEVEL": "ERROR",
        }
        self.parent = subprocess.Popen(
            [sys.executable, "-m", "tests.workflows.webhooks.forking"],
            cwd=BASE_DIR,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._say(json.dumps({"hosts": sorted(hooks.hosts), "lease": LEASE}))
        self.alive: list[int] = []
        self.killed = 0

    def _say(self, line: str) -> None:
        assert self.parent.stdin is not None
        self.parent.stdin.write(line + "\n")
        self.parent.stdin.flush()

    def start(self) -> None:
        assert self.parent.stdout is not None
        self._say("another")
        self.alive.append(int(self.parent.stdout.readline()))

    def kill_one(self) -> None:
        pid = self.alive.pop(random.randrange(len(self.alive)))
        os.kill(pid, signal.SIGKILL)
        self.killed += 1
        self.start()

    def stop(self) -> None:
        for pid in self.alive:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        assert self.parent.stdin is not None
        assert self.parent.stdout is not None
        self.parent.stdin.close()
        self.parent.wait(10)
        self.parent.stdout.close()


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
