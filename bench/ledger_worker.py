"""One process of the ledger's benchmark: appends at a given rate, or seals at the interval of the scheduled task."""

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
    """Appends one entry in one transaction, like the smallest governed change."""
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
    """Appends at a fixed rate and measures each append."""
    # Every thread has its own schedule. A thread that is late continues at once, so that the total rate is kept.
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
