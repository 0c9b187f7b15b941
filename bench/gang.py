"""Runs several processes that start working at the same moment, and collects their rates, times, commits and WAL."""

import json
import statistics
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from bench.load import counters

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, slots=True)
class Ridden:
    """The figures of all processes together. `commits` also counts reading transactions; `write_tx` counts only those
    that wrote, and each savepoint as one. The clients' processor time is comparable even on a machine that is busy."""

    runs: int
    seconds: float
    times: dict[str, list[float]]
    commits: float
    write_tx: float
    wal_bytes: float
    cpu_s: float

    @property
    def rate(self) -> float:
        return self.runs / self.seconds

    def as_json(self) -> dict[str, Any]:
        shown: dict[str, Any] = {
            "runs_per_s": round(self.rate, 1),
            "steps_per_s": round(self.rate * 3, 1),
            "commits_per_run": round(self.commits, 2),
            "write_tx_per_run": round(self.write_tx, 2),
            "wal_bytes_per_run": round(self.wal_bytes),
            "client_cpu_ms_per_run": round(self.cpu_s * 1000, 1),
        }
        return shown | {f"{part}_ms": percentiles(times) for part, times in self.times.items()}


def percentiles(times: list[float]) -> str:
    ordered = sorted(times)
    return f"p50 {statistics.median(ordered) * 1000:.1f} p99 {ordered[int(len(ordered) * 0.99)] * 1000:.1f}"


def ride(
    *, command: list[str], tasks: list[dict[str, Any]], environment: dict[str, str], database: psycopg.Connection[Any]
) -> Ridden:
    """Runs one process per task. Each task says how many `runs` its process does."""
    processes = [start(command, task, environment) for task in tasks]
    # All wait until the last one is ready: start-up and warm-up must not be part of the measurement.
    for process in processes:
        if read(process) != "ready":
            raise RuntimeError("a process did not get ready")
    before, committed, began = counters(database), commits(database), time.perf_counter()
    for process in processes:
        write(process, "go")
    reports = [json.loads(read(process)) for process in processes]
    seconds, after = time.perf_counter() - began, counters(database)
    for process in processes:
        process.wait(timeout=60)
    time.sleep(0.2)  # a backend reports its last transactions only after its client has disconnected
    runs = sum(task["runs"] for task in tasks)
    times: dict[str, list[float]] = {}
    for report in reports:
        for part, found in report["times"].items():
            times.setdefault(part, []).extend(found)
    return Ridden(
        runs=runs,
        seconds=seconds,
        times=times,
        commits=(commits(database) - committed) / runs,
        write_tx=(after[0] - before[0]) / runs,
        wal_bytes=(after[1] - before[1]) / runs,
        cpu_s=sum(report["cpu_s"] for report in reports) / runs,
    )


def ask(command: list[str], task: dict[str, Any], environment: dict[str, str]) -> dict[str, Any]:
    """Runs one process and returns its report."""
    process = start(command, task, environment)
    if read(process) != "ready":
        raise RuntimeError("the process did not get ready")
    write(process, "go")
    report: dict[str, Any] = json.loads(read(process))
    process.wait(timeout=60)
    return report


def commits(database: psycopg.Connection[Any]) -> int:
    """The commits of all databases of the server. Nothing else runs on it during a measurement."""
    row = database.execute("SELECT sum(xact_commit)::bigint FROM pg_stat_database").fetchone()
    return int(row[0]) if row else 0


def start(command: list[str], task: dict[str, Any], environment: dict[str, str]) -> "subprocess.Popen[str]":
    process = subprocess.Popen(
        command, env=environment, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    write(process, json.dumps(task))
    return process


def write(process: "subprocess.Popen[str]", line: str) -> None:
    if process.stdin is None:
        raise RuntimeError("no way to the process")
    process.stdin.write(line + "\n")
    process.stdin.flush()


def read(process: "subprocess.Popen[str]") -> str:
    line = process.stdout.readline() if process.stdout else ""
    if not line:
        raise RuntimeError(f"a process ended with {process.wait(timeout=20)}")
    return line.strip()
