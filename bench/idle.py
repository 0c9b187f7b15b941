"""What a whole stack costs while nobody asks anything: `make run` with nothing, a thousand and a million waiting.

What waits is events that are due tomorrow: rows that the clock must know of and leave alone."""

import json
import os
import shutil
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import psycopg

from tests.stack.support import RunningStack, processes_of, wait_for

WAITING = [int(number) for number in os.environ.get("BENCH_IDLE_WAITING", "0,1000,1000000").split(",")]
SETTLE_SECONDS = float(os.environ.get("BENCH_IDLE_SETTLE", "60"))
SECONDS = float(os.environ.get("BENCH_IDLE_SECONDS", "60"))
GOAL_PERCENT, GOAL_STATEMENTS = 2.0, 2.0
FILL = """
INSERT INTO workflows_outboxevent (id, organization_id, number, event_type, envelope, status, tries, refusals,
    next_try_at, last_error, created_at)
SELECT gen_random_uuid(), (SELECT id FROM governance_organization ORDER BY id LIMIT 1), 0, 'workflow.started', '{}',
    'pending', 0, 0, now() + interval '1 day', '', now()
FROM generate_series(1, %s)
"""
SERVERS = ("postgres", "valkey")


def run() -> dict[str, Any]:
    # A short path: it holds the servers' sockets.
    folder = Path(tempfile.mkdtemp(prefix="hpi", dir="/tmp"))
    folder.chmod(0o755)
    stack = RunningStack(folder / "home")
    try:
        stack.start()
        runtime = json.loads((stack.home / "run" / "runtime.json").read_text())
        url = runtime.get("database_owner_url") or runtime["database_url"]
        return {f"{total}": figures for total, figures in _each(stack, url)}
    finally:
        if stack.process is not None:
            stack.process.send_signal(signal.SIGTERM)
            stack.process.wait(timeout=60)
        wait_for(lambda: not processes_of(stack.home), seconds=20, what="everything ended")
        shutil.rmtree(folder)


def _each(stack: RunningStack, url: str) -> Iterator[tuple[int, dict[str, Any]]]:
    waiting = 0
    for total in WAITING:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(FILL, [total - waiting])
            connection.execute("VACUUM ANALYZE workflows_outboxevent")
        waiting = total
        time.sleep(SETTLE_SECONDS)
        figures = _measured(stack, url) | {"statements_per_s": _statements(stack, url)}
        met = figures["percent_of_a_core"] <= GOAL_PERCENT and figures["statements_per_s"] <= GOAL_STATEMENTS
        yield total, figures | {"goal_met": met}


def _cpu(stack: RunningStack) -> Counter[str]:
    """Seconds of processor time so far, by what the process is."""
    found: Counter[str] = Counter()
    for process in processes_of(stack.home):
        try:
            # With its ended children: a server process of PostgreSQL may have lived for one statement.
            spent, name = sum(process.cpu_times()[:4]), process.name()
        except psutil.NoSuchProcess:
            continue
        found[_role(name)] += spent
    return found


def _role(name: str) -> str:
    """By the name that `ps` shows: ours begin with `hp-`; the supervisor, fork server and witness have none."""
    if name.startswith("hp-"):
        return name.removeprefix("hp-")
    return next((server for server in SERVERS if server in name), "supervisor")


def _transactions(url: str) -> int:
    with psycopg.connect(url, autocommit=True) as connection:
        row = connection.execute(
            "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()"
        ).fetchone()
    return int(row[0]) if row else 0


def _measured(stack: RunningStack, url: str) -> dict[str, Any]:
    before, transactions, began = _cpu(stack), _transactions(url), time.monotonic()
    time.sleep(SECONDS)
    seconds = time.monotonic() - began
    spent = {role: 100 * (now - before[role]) / seconds for role, now in _cpu(stack).items()}
    whole = round(sum(spent.values()), 2)
    return {
        "percent_of_a_core": whole,
        "transactions_per_s": round((_transactions(url) - transactions) / seconds, 2),
        "percent_by": {role: round(percent, 2) for role, percent in sorted(spent.items()) if percent >= 0.01},
    }


def _statements(stack: RunningStack, url: str) -> float:
    """Counted in the server's log, which is on for this alone: BEGIN and COMMIT are not counted."""
    log = next(stack.home.rglob("postgres*.log"))
    # The account that runs the stack may be any role of its embedded server.
    with psycopg.connect(url, user="postgres", autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET log_statement = 'all'")
        connection.execute("SELECT pg_reload_conf()")
        time.sleep(1)
        at, began = log.stat().st_size, time.monotonic()
        time.sleep(SECONDS / 2)
        seconds = time.monotonic() - began
        with log.open("rb") as lines:
            lines.seek(at)
            said = lines.read().decode(errors="replace")
        connection.execute("ALTER SYSTEM RESET log_statement")
        connection.execute("SELECT pg_reload_conf()")
    counted = [
        line
        for line in said.splitlines()
        if ("statement: " in line or "execute " in line) and not line.rstrip().endswith((": BEGIN", ": COMMIT"))
    ]
    return round(len(counted) / seconds, 2)


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))
