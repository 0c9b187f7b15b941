"""A three-step workflow, by events in process and over HTTP, compared with DBOS on the same server in the same run.

`dbos` does three empty steps one after the other. In `dbos_messages` a step ends when a message from outside arrives,
as in Holdpoint. DBOS stores what its steps returned. Holdpoint also decides at the gate, stores every input, writes
requests to an outbox and records each advance in the ledger; `governed` also opens an attempt for every step.
"""

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg

from bench.dbos_venv import dbos_python
from bench.gang import Ridden, ask, ride
from bench.intake import free_port, manage, start
from bench.workflow_flows import FLOWS, PARTS
from bench.workflow_http import HttpRuns

ROOT = Path(__file__).resolve().parent.parent
RUNS = int(os.environ.get("BENCH_RUNS", "200"))
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "3"))
WORKER = [sys.executable, "-m", "bench.workflow_worker"]
Plan = tuple[list[str], list[dict[str, Any]]]  # a command, and a task for each of its processes
PROCESSES = (1, 4)
REFERENCES = ("dbos", "dbos_messages")
DBOS_SHAPES = ((1, 1), (1, 4), (2, 2))  # processes, and threads in each that start runs
GOAL_STATEMENTS, GOAL_COMMITS, GOAL_WAL = 10, 5, 12_000


def run() -> dict[str, Any]:
    home = ROOT / "var" / "bench"
    home.mkdir(parents=True, exist_ok=True)
    environment = os.environ | {
        "DJANGO_SETTINGS_MODULE": "bench.settings",
        "HOLDPOINT_HOME": str(home),
        "LOG_LEVEL": "ERROR",
    }
    manage(environment, "migrate", "--noinput", "-v0")
    demo = json.loads(manage(environment, "demo", "--json"))
    database = psycopg.connect(os.environ["DATABASE_URL"], autocommit=True)
    asked = os.environ.get("BENCH_PARTS", "dbos dbos_messages in_process http").split()
    try:
        where = json.loads(output_of([sys.executable, "-m", "bench.workflow_setup"], environment))
        found = ridden(asked, where, environment, database)
        for flow in FLOWS:
            if "in_process" in asked:
                found[flow]["counts"] = counted(flow, where[flow], environment)
        if "http" in asked:
            for flow, shown in http(where, demo["keys"]["workflows"], environment, database).items():
                found[flow]["http"] = shown
    finally:
        database.close()
    return found | verdict(found)


def ridden(
    asked: list[str], where: dict[str, Any], environment: dict[str, str], database: psycopg.Connection[Any]
) -> dict[str, Any]:
    """Measures all candidates in turn, in several rounds."""
    # In turn, so that other load on the machine affects all of them alike.
    plans: dict[str, dict[str, Plan]] = {}
    for who in REFERENCES:
        if who in asked:
            plans[who] = dbos_plans(database, messages=who == "dbos_messages")
    for flow in FLOWS:
        plans[flow] = flow_plans(flow, where[flow]) if "in_process" in asked else {}
    rides: dict[str, dict[str, list[Ridden]]] = {who: {name: [] for name in plans[who]} for who in plans}
    for _ in range(ROUNDS):
        for who, settings in plans.items():
            for name, (command, tasks) in settings.items():
                done = ride(command=command, tasks=tasks, environment=environment, database=database)
                rides[who][name].append(done)
    found = {who: chosen(rides[who]) for who in rides if rides[who]}
    return {who: shown if who in REFERENCES else {"in_process": shown} for who, shown in found.items()} | {
        flow: {} for flow in FLOWS if flow not in found
    }


def dbos_plans(database: psycopg.Connection[Any], *, messages: bool) -> dict[str, Plan]:
    """Commands and tasks for DBOS. Empty if it cannot be installed here; then there is no comparison."""
    try:
        command = [dbos_python(), str(ROOT / "bench" / "dbos_reference.py")]
    except subprocess.CalledProcessError:
        return {}
    url = urlsplit(os.environ["DATABASE_URL"])._replace(path="/holdpoint_dbos").geturl()
    if not database.execute("SELECT 1 FROM pg_database WHERE datname = 'holdpoint_dbos'").fetchone():
        database.execute("CREATE DATABASE holdpoint_dbos")
    task = {"url": url, "warm_up": 20, "messages": messages}
    return {
        f"{processes}x{starters}": (
            command,
            [
                task | {"executor": f"e{number}", "threads": starters, "runs": RUNS // processes}
                for number in range(processes)
            ],
        )
        for processes, starters in DBOS_SHAPES
    }


def flow_plans(flow: str, where: dict[str, str]) -> dict[str, Plan]:
    task = where | {"flow": flow, "warm_up": 10, "count": False}
    return {f"{number}": (WORKER, [task | {"runs": RUNS // number} for _ in range(number)]) for number in PROCESSES}


def counted(flow: str, where: dict[str, str], environment: dict[str, str]) -> dict[str, Any]:
    task = where | {"flow": flow, "warm_up": 10, "count": True}
    found = ask(WORKER, task | {"runs": 30}, environment)
    if os.environ.get("BENCH_PROFILE"):
        print(json.dumps(found["texts"], indent=2))
        print(ask(WORKER, task | {"runs": 60, "profile": True}, environment)["profile"])
    return counts(found["counts"])


def chosen(rides: dict[str, list[Ridden]]) -> dict[str, Any]:
    """The median round of two settings: the first, with one run at a time, for the times; the fastest, for the rate."""
    middle = {name: sorted(found, key=lambda one: one.rate)[len(found) // 2] for name, found in rides.items()}
    alone = next(iter(middle))
    best = max(middle, key=lambda name: middle[name].rate)
    return {f"alone_{alone}": middle[alone].as_json(), "best": {"setting": best} | middle[best].as_json()}


def counts(rows: dict[str, list[tuple[int, int, int]]]) -> dict[str, Any]:
    """The medians of thirty runs per event. A run is a start, two steps and an end."""
    shown: dict[str, Any] = {}
    for part in ("start", "step", "end"):
        statements, commits, wal = (statistics.median(column) for column in zip(*rows[part], strict=True))
        shown[part] = {"statements": statements, "commits": commits, "wal_bytes": wal}
    shown["run"] = {key: sum(shown[part][key] for part in PARTS) for key in ("statements", "commits", "wal_bytes")}
    return shown


def http(
    where: dict[str, Any], key: str, environment: dict[str, str], database: psycopg.Connection[Any]
) -> dict[str, Any]:
    port = free_port()
    server = start(environment, port)
    try:
        found = {}
        for flow in FLOWS:
            HttpRuns(port=port, flow=flow, where=where[flow], key=key).measure(runs=24, database=database)
            runs = HttpRuns(port=port, flow=flow, where=where[flow], key=key)
            found[flow] = runs.measure(runs=RUNS, database=database)
        return found
    finally:
        server.terminate()
        server.wait(timeout=20)


def verdict(found: dict[str, Any]) -> dict[str, Any]:
    """The ratios to DBOS in this run, and which goals are met."""
    ratio: dict[str, Any] = {}
    met: dict[str, Any] = {}
    for flow in FLOWS:
        counted = found[flow].get("counts")
        if counted:
            met[flow] = {
                "step_is_one_commit": counted["step"]["commits"] <= 1,
                "step_statements": counted["step"]["statements"] <= GOAL_STATEMENTS,
                "run_commits": counted["run"]["commits"] <= GOAL_COMMITS,
                "run_wal": counted["run"]["wal_bytes"] <= GOAL_WAL,
            }
        best = found[flow].get("in_process", {}).get("best")
        ways = {"in_process": best, "http": found[flow].get("http")}
        for who in REFERENCES:
            if who in found:
                theirs = found[who]["best"]["steps_per_s"]
                shown = {way: round(figures["steps_per_s"] / theirs, 2) for way, figures in ways.items() if figures}
                ratio.setdefault(who, {})[flow] = shown
                met.setdefault(flow, {})[f"ahead_of_{who}"] = shown.get("in_process", 0) > 1
    return {"steps_ratio_to": ratio, "goal_met": met}


def output_of(command: list[str], environment: dict[str, str]) -> str:
    return subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT).stdout


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))
