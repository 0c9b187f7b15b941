"""The reference: DBOS doing three empty steps, or three steps each of which waits for a message from outside, as ours
do. Runs in its own venv, which has no Holdpoint; see bench.dbos_venv.

Reads its task as JSON from its first line, answers "ready", and begins at the second line.
"""

import json
import queue
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
modules: dict[str, "queue.SimpleQueue[int]"] = {}
steps_began: dict[str, float] = {}
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


@DBOS.step()
def ask(number: int, case: str) -> int:
    """The request to a module. That it is out is known to the module at once, which costs nothing here."""
    modules[case].put(number)
    return number


@DBOS.workflow()
def three_messages(case: str) -> int:
    """A request goes out, its answer comes in: what an event does to a run of ours."""
    total = 0
    for number in range(3):
        ask(number, case)
        total += DBOS.recv("answer", timeout_seconds=60)
    return total


def carry(count: int) -> None:
    for _ in range(count):
        began = time.perf_counter()
        case = str(uuid.uuid4())
        if task["messages"]:
            answered(case)
        else:
            with SetWorkflowID(case):
                three(case)
        runs.append(time.perf_counter() - began)


def answered(case: str) -> None:
    """A step is measured from its answer's sending until the next request is out, or the run has ended."""
    modules[case] = queue.SimpleQueue()
    with SetWorkflowID(case):
        run = DBOS.start_workflow(three_messages, case)
    for _ in range(3):
        modules[case].get(timeout=60)
        if steps_began.get(case):
            steps.append(time.perf_counter() - steps_began[case])
        steps_began[case] = time.perf_counter()
        DBOS.send(case, 1, "answer")
    run.get_result()
    steps.append(time.perf_counter() - steps_began.pop(case))
    del modules[case]


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
