"""Ten thousand runs at once, answered by the simulated modules: all end, none is stuck, and the record is complete."""

import json
import os
import subprocess
import sys
import time
from collections import Counter
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.conf import settings
from django.db import connection
from django.db.models import Count
from django.utils import timezone

from attempts.lifecycle.states import FINAL_STATES
from attempts.reviews.models import Review
from attempts.reviews.services.human_review import human_review_decide
from attempts.reviews.states import VoteVerdict
from bench.record import record
from config.env import BASE_DIR
from governance.outside.valkey import valkey
from governance.tenancy.models import Organization
from reasoncodes.base.tenancy import every_tenant
from sdk.simulator.streams import PREFIX
from tests.cast import Cast
from tests.workflows.running import REGION, Running
from tests.workflows.soak_worker import STREAMS
from workflows.events.services.outbox import outbox_relay
from workflows.runs.models import WorkflowInstance
from workflows.runs.services.clock import deadlines_pass, signals_due, step_retries_due, steps_time_out
from workflows.runs.services.dispatch import instances_dispatch
from workflows.runs.services.replay import instance_replay

INSTANCES = int(os.environ.get("SOAK_INSTANCES", "10000"))
WORKERS = 2
BEHAVIOUR = {
    "latency_ms": 50,
    "failure_rate": 0.08,
    "retryable_share": 0.6,
    "duplicate_rate": 0.2,
    "reorder_rate": 0.2,
    "seed": 11,
}
OPEN = ("queued", "running", "waiting_approval")


class Soak:
    def __init__(self, cast: Cast) -> None:
        self.running = Running(cast)
        self.organization = self.running.organization
        # Runs queue when so many are under way, and are started as others end.
        with every_tenant():
            Organization.objects.filter(id=self.organization.id).update(
                max_concurrency=300, max_runs_per_min=10_000_000
            )
        self.reviewer = cast.actor(cast.reviewer, [self.organization])
        self.decided = 0

    def worker(self) -> "subprocess.Popen[str]":
        database = urlsplit(os.environ["DATABASE_URL"])._replace(path=f"/{connection.settings_dict['NAME']}").geturl()
        environment = os.environ | {
            "DJANGO_SETTINGS_MODULE": "config.settings.test",
            "DATABASE_URL": database,
            "SECRET_KEY": settings.SECRET_KEY,
            "PYTHONPATH": str(BASE_DIR),
            "LOG_LEVEL": "ERROR",
        }
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.workflows.soak_worker"],
            cwd=BASE_DIR,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        order = {
            "cases": INSTANCES // WORKERS,
            "behaviour": BEHAVIOUR,
            "account": str(self.running.module.id),
            "organization": str(self.organization.id),
            "product": str(self.running.product.id),
        }
        assert process.stdin is not None
        process.stdin.write(json.dumps(order) + "\n")
        process.stdin.flush()
        return process

    def tick(self) -> None:
        """What beat, the worker and people do."""
        with every_tenant():
            now = timezone.now()
            steps_time_out(at=now, region=REGION)
            step_retries_due(at=now, region=REGION)
            deadlines_pass(at=now, region=REGION)
            signals_due(at=now, region=REGION)
            instances_dispatch(at=now, region=REGION)
            self._review()
            outbox_relay(at=timezone.now())

    def _review(self) -> None:
        for review in Review.objects.filter(status="requested").order_by("id")[:50]:
            self.decided += 1
            verdict = VoteVerdict.OVERRIDE if self.decided % 4 == 0 else VoteVerdict.CONFIRM
            human_review_decide(
                actor=self.reviewer,
                at=timezone.now(),
                review_id=review.id,
                verdict=verdict,
                action_digest=review.action_digest,
            )

    def statuses(self) -> Counter[str]:
        with every_tenant():
            rows = WorkflowInstance.objects.order_by().values_list("state").annotate(Count("id"))
            return Counter(dict(rows))

    def run(self) -> list[dict[str, int]]:
        """Until every case that was to be created has ended; a minute without any progress is the end of it."""
        workers = [self.worker() for _ in range(WORKERS)]
        best, since = -1, time.monotonic()
        try:
            while True:
                self.tick()
                found = self.statuses()
                ended = found.total() - sum(found[status] for status in OPEN)
                if ended == INSTANCES // WORKERS * WORKERS:
                    break
                if ended > best:
                    best, since = ended, time.monotonic()
                assert time.monotonic() - since < 120, f"stuck: {found}"
                assert all(process.poll() is None for process in workers)
            self.tick()  # what the last ones had to say is published too
        finally:
            counts = [self._end(process) for process in workers]
        return counts

    @staticmethod
    def _end(process: "subprocess.Popen[str]") -> dict[str, int]:
        output, _ = process.communicate(timeout=60)
        return dict(json.loads(output)) if process.returncode == 0 else {}


def number_of(sql: str, *params: Any) -> int:
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        return int(cursor.fetchone()[0])


# Each finds what must not be there.
HALTED_WITHOUT_REASON = "SELECT count(*) FROM workflows_workflowinstance WHERE state = 'halted' AND halt_reason = ''"
OPEN_STEPS = "SELECT count(*) FROM workflows_workflowstep WHERE state IN ('pending', 'in_progress', 'waiting_approval')"
UNPUBLISHED = "SELECT count(*) FROM workflows_outboxevent WHERE status <> 'sent'"
UNFOLLOWED = "SELECT count(*) FROM workflows_nudge"
OPEN_REVIEWS = "SELECT count(*) FROM attempts_review WHERE status = 'requested'"
OPEN_ATTEMPTS = "SELECT count(*) FROM attempts_attempt WHERE NOT state = ANY(%s)"
PLACES_TAKEN = "SELECT count(*) FROM attempts_slot"
INTENTS_WITHOUT_RECEIPT = """
SELECT count(*) FROM attempts_dispatchintent intent JOIN attempts_attempt attempt ON attempt.id = intent.attempt_id
WHERE attempt.state = 'completed'
  AND NOT EXISTS (SELECT 1 FROM attempts_receipt receipt WHERE receipt.intent_id = intent.id)
"""
# One entry for each input that advanced the run, with its number; and `workflow.queued` for those that had to wait.
LEDGER_DIFFERS = """
WITH advanced AS (
    SELECT instance_id, array_agg(number ORDER BY number) AS numbers
    FROM workflows_workflowevent WHERE outcome = 'advanced' GROUP BY instance_id
), entered AS (
    SELECT subject_id, array_agg((payload->>'number')::int ORDER BY (payload->>'number')::int) AS numbers
    FROM governance_ledgerentry WHERE subject_type = 'workflow_instance' AND payload ? 'number' GROUP BY subject_id
)
SELECT count(*) FROM workflows_workflowinstance instance
LEFT JOIN advanced ON advanced.instance_id = instance.id
LEFT JOIN entered ON entered.subject_id = instance.id
WHERE advanced.numbers IS DISTINCT FROM entered.numbers
"""


def wrong_ones() -> dict[str, int]:
    found = {
        "halted without reason": number_of(HALTED_WITHOUT_REASON),
        "open steps": number_of(OPEN_STEPS),
        "unpublished events": number_of(UNPUBLISHED),
        "nudges": number_of(UNFOLLOWED),
        "open reviews": number_of(OPEN_REVIEWS),
        "open attempts": number_of(OPEN_ATTEMPTS, list(FINAL_STATES)),
        "places still taken": number_of(PLACES_TAKEN),
        "intents without receipt": number_of(INTENTS_WITHOUT_RECEIPT),
        "ledger differs": number_of(LEDGER_DIFFERS),
    }
    return {name: count for name, count in found.items() if count}


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.django_db(transaction=True)
def test_ten_thousand_runs_end_and_their_record_is_complete(cast: Cast) -> None:
    for name in STREAMS:
        valkey().delete(PREFIX + name)
    soak = Soak(cast)
    began = time.monotonic()
    counts = soak.run()
    seconds = time.monotonic() - began
    ended = soak.statuses()
    with every_tenant():
        replays = (instance_replay(instance=row) for row in WorkflowInstance.objects.iterator(chunk_size=500))
        differing = sum(bool(one.differences) for one in replays)
    wrong = wrong_ones()
    total: Counter[str] = sum((Counter(one) for one in counts), Counter())
    events = number_of("SELECT count(*) FROM workflows_workflowevent")
    record(
        name="soak instances",
        figures={
            "instances": ended.total(),
            "seconds": round(seconds),
            "per_s": round(ended.total() / seconds, 1),
            "events_per_s": round(events / seconds, 1),
            "ended": dict(sorted(ended.items())),
            "answers": dict(sorted(total.items())),
            "reviews_decided": soak.decided,
            "events": events,
            "ledger_entries": number_of("SELECT count(*) FROM governance_ledgerentry"),
            "attempts": number_of("SELECT count(*) FROM attempts_attempt"),
            "replays_that_differ": differing,
        },
    )
    assert ended.total() == INSTANCES // WORKERS * WORKERS
    assert set(ended) == {"completed", "halted"}
    assert total["duplicates"], "the modules repeat themselves"
    assert total["stale"] + total["late"] + total["drift"], "and some repetitions come too late"
    assert soak.decided
    assert wrong == {}
    assert differing == 0
