"""Relays and consumers killed with -9 again and again, and Valkey stopped under load: nothing is lost, nothing counts
twice, nothing is overtaken within a run; what had to wait is done afterwards."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import mkdtemp
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.conf import settings as django_settings
from django.db import connection
from django.utils import timezone

from attempts.execution.adapters.base import OutcomeKind
from attempts.execution.adapters.event import EventAdapter, stream_client
from bench.record import record
from config.embedded.paths import StackPaths
from config.embedded.valkey import ValkeyServer
from config.env import BASE_DIR
from governance.outside.valkey import valkey
from governance.tenancy.models import Organization
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.execution.test_adapters import call
from tests.attempts.test_intake import body, post
from tests.cast import Cast
from tests.governed import open_contract
from tests.workflows.running import Running
from tests.workflows.stream_support import Player, findings, published, repetitions
from workflows.events.adapters.streams import GROUP, group_standings, message_client
from workflows.events.models import OutboxEvent, ParkedMessage
from workflows.events.services.outbox import MOST_REFUSALS, outbox_relay
from workflows.runs.models import WorkflowInstance
from workflows.runs.services.replay import instance_replay

pytestmark = pytest.mark.django_db(transaction=True)
CASES = int(os.environ.get("SOAK_STREAM_CASES", "2500"))  # four events in, and more out, for each


@pytest.fixture
def own_valkey(settings: Any) -> Iterator[ValkeyServer]:
    """One that can be stopped, with its data kept, while other tests go on with theirs."""
    paths = StackPaths(home=Path(mkdtemp(prefix="hp-streams-")).resolve())
    server = ValkeyServer(paths=paths)
    server.start()
    settings.REDIS_URL = server.url()
    forget_clients()
    yield server
    forget_clients()
    server.stop()
    subprocess.run(["rm", "-rf", str(paths.home)], check=True)


def forget_clients() -> None:
    for client in (stream_client, message_client, valkey):
        client.cache_clear()


class Trial:
    def __init__(self, cast: Cast, server: ValkeyServer) -> None:
        self.running = Running(cast, "ai_only")
        self.cast, self.server = cast, server
        with every_tenant():
            Organization.objects.filter(id=cast.organization.id).update(
                max_concurrency=10_000, max_runs_per_min=10_000_000
            )
        self.player = Player(
            secret=cast.key("orchestrator:write"), organization=cast.organization.id, product=self.running.product.id
        )

    def gang(self, **changes: Any) -> "subprocess.Popen[str]":
        database = urlsplit(os.environ["DATABASE_URL"])._replace(path=f"/{connection.settings_dict['NAME']}").geturl()
        environment = os.environ | {
            "DJANGO_SETTINGS_MODULE": "config.settings.test",
            "DATABASE_URL": database,
            "REDIS_URL": self.server.url(),
            "SECRET_KEY": django_settings.SECRET_KEY,
            "PYTHONPATH": str(BASE_DIR),
            "LOG_LEVEL": "CRITICAL",
        }
        environment.pop("PYTEST_XDIST_WORKER", None)  # it would choose another of Valkey's databases
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.workflows.stream_gang"],
            cwd=BASE_DIR,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        order = {"consumers": 2, "relays": 2, "claim_after_ms": 500, "kill_every": [0.1, 0.5], "seed": 7} | changes
        self.tell(process, json.dumps(order))
        return process

    @staticmethod
    def tell(process: "subprocess.Popen[str]", line: str) -> None:
        assert process.stdin is not None
        process.stdin.write(line + "\n")
        process.stdin.flush()

    def ended(self) -> int:
        with every_tenant():
            return WorkflowInstance.objects.filter(state__in=["completed", "cancelled", "halted"]).count()

    def until(self, condition: Callable[[], bool], *, seconds: float) -> None:
        """The modules go on meanwhile."""
        deadline, looked = time.monotonic() + seconds, 0.0
        while True:
            self.player.round()
            if time.monotonic() - looked > 0.3:
                if condition():
                    return
                looked = time.monotonic()
            assert time.monotonic() < deadline, self.standing()

    def standing(self) -> dict[str, Any]:
        with every_tenant():
            statuses = list(WorkflowInstance.objects.values_list("state", flat=True))
        return {"runs": {one: statuses.count(one) for one in set(statuses)}, "groups": group_standings()}

    def quiet(self) -> bool:
        """Everything published, everything read and acknowledged."""
        with every_tenant():
            if OutboxEvent.objects.exclude(status="sent").exists():
                return False
        ours = [one for one in group_standings() if one.group == GROUP]
        return bool(ours) and all(one.lag == 0 and one.pending == 0 for one in ours)

    def outage(self, *, seconds: float) -> int:
        """Valkey stopped, while cases go on being announced over HTTP: they are taken in. What needs the throttles is
        refused, and told when to come back. How many were announced."""
        open_contract(self.cast)
        modules, caller = self.cast.with_key(self.player.secret), self.cast.api("attempts:create")
        self.server.stop()
        until, posted = time.monotonic() + seconds, 0
        while time.monotonic() < until:
            self.player.create()
            envelope = self.player.waiting.pop()
            answer = modules.post("/api/v1/events", envelope, format="json")
            assert answer.status_code == 202, answer.content
            self.player.sent.add(envelope["event_id"])
            posted += 1
            refused = post(caller, body(), key=f"key-{posted:08}")
            assert (refused.status_code, refused.json()["reason_code"]) == (503, "throttle_unavailable")
            assert int(refused["Retry-After"]) > 0
            time.sleep(0.1)
        self.server.start()
        return posted

    def run(self, *, cases: int, outage: float, **changes: Any) -> dict[str, Any]:
        """All cases end, with kills all the time until nine tenths have, and an outage in the middle."""
        began, gang = time.monotonic(), self.gang(**changes)
        patience = 30 + cases / 4
        try:
            for _ in range(cases):
                self.player.create()
            self.until(lambda: self.ended() >= cases // 4, seconds=patience)
            total = cases + self.outage(seconds=outage)
            back, before = time.monotonic(), self.ended()
            self.until(lambda: self.ended() > before, seconds=patience)
            recovered = time.monotonic() - back
            self.until(lambda: self.ended() >= total * 9 // 10, seconds=patience)
            self.tell(gang, "calm")
            self.until(lambda: self.ended() == total and self.quiet(), seconds=patience)
            rest = time.monotonic() - back
        finally:
            report, _ = gang.communicate(timeout=60)
        figures = {"cases": total, "seconds": round(time.monotonic() - began), "rest_s": round(rest, 1)}
        return figures | {"first_end_after_outage_s": round(recovered, 1)} | json.loads(report)


def nothing_went_wrong(trial: Trial, figures: dict[str, Any]) -> dict[str, Any]:
    with every_tenant():
        statuses = set(WorkflowInstance.objects.values_list("state", flat=True))
        types = sorted(set(OutboxEvent.objects.values_list("event_type", flat=True)))
        found = findings(trial.player)
        assert statuses == {"completed"}
        assert found == dict.fromkeys(found, 0)
        assert not ParkedMessage.objects.exists()
        assert figures["kills"] >= 5
        assert figures["crashes"] == 0
        more = {"events_in": len(trial.player.sent), "events_out": OutboxEvent.objects.count()}
    copies = repetitions(published(types))
    return figures | more | {"sent_twice_by_modules": trial.player.repeated, "published_again": copies} | found


def test_killed_relays_and_consumers_and_a_stopped_valkey_lose_nothing(cast: Cast, own_valkey: ValkeyServer) -> None:
    trial = Trial(cast, own_valkey)
    nothing_went_wrong(trial, trial.run(cases=20, outage=3))


def test_a_valkey_that_is_full_counts_as_away_and_nothing_is_parked_for_it(
    cast: Cast, own_valkey: ValkeyServer
) -> None:
    Running(cast, "ai_only").start()
    client: Any = message_client()
    client.config_set("maxmemory", "100kb")
    with every_tenant():
        for _ in range(MOST_REFUSALS + 1):
            assert outbox_relay(at=timezone.now()) == 0
            OutboxEvent.objects.update(next_try_at=timezone.now())
        assert set(OutboxEvent.objects.values_list("status", "refusals", "tries")) >= {
            ("pending", 0, MOST_REFUSALS + 1)
        }
        refused = EventAdapter().call(call(operation="test.full"))
        assert (refused.kind, refused.retryable) == (OutcomeKind.FAILURE, True)
        client.config_set("maxmemory", "0")
        assert outbox_relay(at=timezone.now()) == OutboxEvent.objects.filter(status="sent").count() > 0


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_ten_thousand_events_survive_kills_and_thirty_seconds_without_valkey(
    cast: Cast, own_valkey: ValkeyServer
) -> None:
    trial = Trial(cast, own_valkey)
    figures = nothing_went_wrong(trial, trial.run(cases=CASES, outage=30, kill_every=[0.3, 1.5]))
    with every_tenant():
        replays = (instance_replay(instance=row) for row in WorkflowInstance.objects.iterator(chunk_size=500))
        figures["replays_that_differ"] = sum(bool(one.differences) for one in replays)
    record(name="soak streams", figures=figures)
    assert figures["replays_that_differ"] == 0
    assert figures["events_in"] >= 4 * CASES
