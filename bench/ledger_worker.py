"""One process of the ledger's benchmark: appends at a given rate, or seals as the clock does."""

import json
import sys
import threading
import time
from typing import Any

from django.db import connection
from django.utils import timezone

from governance.ledger.services import ledger_entry_build
from governance.sealing.configured import sealing_key
from governance.sealing.services.seal import ledger_seal_all
from governance.sql.insert import insert_together
from reasoncodes.base.actors import SYSTEM
from reasoncodes.base.ids import uuid7
from reasoncodes.base.tenancy import every_tenant


def append_once(number: int) -> None:
    """One entry, one transaction, as the smallest governed change writes it."""
    entry = ledger_entry_build(
        action="organization.changed",
        organization_id=None,
        subject_type="organization",
        subject_id=uuid7(),
        actor=SYSTEM,
        at=timezone.now(),
        payload={"digest": "ab" * 32, "number": number},
    )
    insert_together([entry], alone=True)


def append(task: dict[str, Any], go: float) -> dict[str, Any]:
    """Every thread has its own beat; who is late goes on at once, so that the rate is kept on the whole."""
    every = task["threads"] / task["per_s"]
    ends = go + task["seconds"]
    times: list[float] = []

    def run(index: int) -> None:
        with every_tenant(), connection.cursor() as cursor:
            cursor.execute("SET application_name = 'bench appender'")
            due = go + every * index / task["threads"]
            mine = []
            while due < ends:
                time.sleep(max(0.0, due - time.perf_counter()))
                began = time.perf_counter()
                append_once(len(mine))
                mine.append(time.perf_counter() - began)
                due += every
            times.extend(mine)
        connection.close()

    threads = [threading.Thread(target=run, args=[index]) for index in range(task["threads"])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {"times": times, "late_s": time.perf_counter() - ends, "cpu_s": time.process_time()}


def seal(task: dict[str, Any], go: float) -> dict[str, Any]:
    key, sealed, busy, longest = sealing_key(), 0, 0.0, 0.0
    with every_tenant():
        while time.perf_counter() < go + task["seconds"]:
            began = time.perf_counter()
            sealed += ledger_seal_all(at=timezone.now(), key=key)
            taken = time.perf_counter() - began
            busy, longest = busy + taken, max(longest, taken)
            time.sleep(max(0.0, task["every"] - taken))
    return {"sealed": sealed, "busy_s": round(busy, 2), "longest_ms": round(longest * 1000, 1)}


def main() -> None:
    task = json.loads(sys.stdin.readline())
    with every_tenant(), connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    print("ready", flush=True)
    sys.stdin.readline()
    work = {"append": append, "seal": seal}[task["work"]]
    print(json.dumps(work(task, time.perf_counter())), flush=True)
