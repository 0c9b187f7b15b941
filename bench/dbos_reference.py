"""The reference: DBOS doing three empty steps. Runs in its own venv, which has no Holdpoint; see bench.dbos_venv.

Reads its task as JSON from its first line, answers "ready", and begins at the second line.
"""

import json
import sys
import threading
import time
import uuid
from typing import Any

from dbos import DBOS, SetWorkflowID

task: dict[str, Any] = json.loads(sys.stdin.readline())
DBOS(
    config={
        "name": "bench",
        "system_database_url": task["url"],
        "log_level": "ERROR",
        "application_version": "1",
        "executor_id": task["executor"],
    }
)
steps: list[float] = []
runs: list[float] = []


@DBOS.step()
def nothing(number: int) -> int:
    return number


@DBOS.workflow()
def three(case: str) -> int:
    total = 0
    for number in range(3):
        began = time.perf_counter()
        total += nothing(number)
        steps.append(time.perf_counter() - began)
    return total


def carry(count: int) -> None:
    for _ in range(count):
        began = time.perf_counter()
        with SetWorkflowID(str(uuid.uuid4())):
            three("case")
        runs.append(time.perf_counter() - began)


def all_threads(count: int) -> None:
    share = count // task["threads"]
    threads = [threading.Thread(target=carry, args=(share,)) for _ in range(task["threads"])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


DBOS.launch()
all_threads(task["warm_up"])
time.sleep(1.1)  # PostgreSQL counts a backend's transactions once a second: these belong to the time before
all_threads(task["threads"])
steps.clear()
runs.clear()
print("ready", flush=True)
sys.stdin.readline()
busy = time.process_time()
all_threads(task["runs"])
report = {"times": {"step": steps, "run": runs}, "cpu_s": time.process_time() - busy}
print(json.dumps(report), flush=True)
DBOS.destroy()
