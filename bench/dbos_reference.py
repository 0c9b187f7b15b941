"""The reference for workflows: DBOS with three empty steps, or with three steps that each wait for a message from
outside, as Holdpoint's steps do. Runs in a venv of its own, without Holdpoint; see bench.dbos_venv.

Reads its task as JSON from the first line of stdin, prints "ready", and starts after the second line.
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
    """The request to a module. The module gets it through a queue in memory, which costs nothing."""
    modules[case].put(number)
    return number


@DBOS.workflow()
def three_messages(case: str) -> int:
    """Three times: sends a request and waits for its answer, as a run of Holdpoint does."""
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
    """Answers one run. A step is measured from sending its answer until the next request is sent or the run ends."""
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
# PostgreSQL reports a backend's transactions once a second. The wait keeps those of the warm-up out of the measurement.
time.sleep(1.1)
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
