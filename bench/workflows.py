"""A three-step workflow, by events in process and through HTTP, beside DBOS on the same server in the same run.

DBOS keeps what its steps returned. Holdpoint also decides at the gate, keeps every input, writes the requests to an
outbox and puts each advance on the ledger; `governed` opens an attempt for every step besides.
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
RUNS = int(os.environ.get("BENCH_RUNS", "400"))
PROCESSES = (1, 4)
DBOS_SHAPES = ((1, 1), (1, 4), (2, 2))  # processes, starters in each
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
    asked = os.environ.get("BENCH_PARTS", "dbos in_process http").split()
    found: dict[str, Any] = {}
    try:
        where = json.loads(ask_lines([sys.executable, "-m", "bench.workflow_setup"], environment))
        if "dbos" in asked:
            found |= dbos(environment, database)
        for flow in FLOWS:
            found[flow] = {}
            if "in_process" in asked:
                found[flow] |= in_process(flow, where[flow], environment, database)
        if "http" in asked:
            for flow, shown in http(where, demo["keys"]["workflows"], environment, database).items():
                found[flow]["http"] = shown
    finally:
        database.close()
    return found | verdict(found)


def dbos(environment: dict[str, str], database: psycopg.Connection[Any]) -> dict[str, Any]:
    url = urlsplit(os.environ["DATABASE_URL"])._replace(path="/holdpoint_dbos").geturl()
    if not database.execute("SELECT 1 FROM pg_database WHERE datname = 'holdpoint_dbos'").fetchone():
        database.execute("CREATE DATABASE holdpoint_dbos")
    try:
        command, found = [dbos_python(), str(ROOT / "bench" / "dbos_reference.py")], {}
    except subprocess.CalledProcessError:
        return {"dbos_not_installed": True}
    for processes, starters in DBOS_SHAPES:
        tasks = [
            {"url": url, "executor": f"e{number}", "threads": starters, "warm_up": 20, "runs": RUNS // processes}
            for number in range(processes)
        ]
        found[f"{processes}x{starters}"] = ride(
            command=command, tasks=tasks, environment=environment, database=database
        )
    return {"dbos": chosen(found)}


def in_process(
    flow: str, where: dict[str, str], environment: dict[str, str], database: psycopg.Connection[Any]
) -> dict[str, Any]:
    command = [sys.executable, "-m", "bench.workflow_worker"]
    task = where | {"flow": flow, "warm_up": 10, "count": False}
    found = {}
    for processes in PROCESSES:
        tasks = [task | {"runs": RUNS // processes} for _ in range(processes)]
        found[f"{processes}"] = ride(command=command, tasks=tasks, environment=environment, database=database)
    counted = ask(command, task | {"runs": 30, "count": True}, environment)
    if os.environ.get("BENCH_PROFILE"):
        print(json.dumps(counted["texts"], indent=2))
        print(ask(command, task | {"runs": 60, "profile": True}, environment)["profile"])
    return {"in_process": chosen(found), "counts": counts(counted["counts"])}


def chosen(found: dict[str, Ridden]) -> dict[str, Any]:
    """One at a time, for the times; the fastest setting, for the rate."""
    alone = next(iter(found))
    best = max(found, key=lambda name: found[name].rate)
    return {f"alone_{alone}": found[alone].as_json(), "best": {"setting": best} | found[best].as_json()}


def counts(rows: dict[str, list[tuple[int, int, int]]]) -> dict[str, Any]:
    """Per event, the median of thirty runs; a run is a start, two steps and an end."""
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
    """Ratios to DBOS in this run, and which goals are met."""
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
        if "dbos" in found:
            theirs = found["dbos"]["best"]["steps_per_s"]
            best = found[flow].get("in_process", {}).get("best")
            ways = {"in_process": best, "http": found[flow].get("http")}
            ratio[flow] = {way: round(shown["steps_per_s"] / theirs, 2) for way, shown in ways.items() if shown}
            met.setdefault(flow, {})["ahead_of_dbos"] = ratio[flow].get("in_process", 0) > 1
    return {"steps_ratio_to_dbos": ratio, "goal_met": met}


def ask_lines(command: list[str], environment: dict[str, str]) -> str:
    return subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT).stdout


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))
