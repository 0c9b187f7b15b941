"""Sealing while entries are appended: does the sealer keep up with 1,000 appends a second, and does it make appends
wait? The same load runs without and with the sealer, and times, WAL, wait events, locks and the sealer's lag are
compared."""

import json
import os
import statistics
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import psycopg

from bench.gang import read, start, write
from bench.intake import manage
from bench.load import counters

ROOT = Path(__file__).resolve().parent.parent
WORKER = [sys.executable, "-c", "import django; django.setup(); from bench.ledger_worker import main; main()"]
RATE = int(os.environ.get("BENCH_APPENDS", "1000"))
SECONDS = int(os.environ.get("BENCH_SECONDS", "60"))
PROCESSES, THREADS = 2, 4
SEAL_EVERY = 1.0  # as in config/celery.py
SAMPLE_EVERY = 0.2
GOAL_LAG_S = 2.0
LAG = """
SELECT coalesce(extract(epoch FROM clock_timestamp() - min(e.at)), 0) FROM governance_ledgerentry e
WHERE (e.txid, e.id) > (SELECT cursor_txid, cursor_id FROM governance_ledgercheckpoint ORDER BY size DESC LIMIT 1)
"""
WAITS = """
SELECT coalesce(wait_event_type || ':' || wait_event, 'running'), count(*) FROM pg_stat_activity
WHERE application_name = 'bench appender' AND state = 'active' GROUP BY 1
"""
BLOCKED = """
SELECT count(*) FROM pg_stat_activity
WHERE application_name = 'bench appender' AND cardinality(pg_blocking_pids(pid)) > 0
"""
# `extend` is left out: every writer takes it for a moment when a file grows, with or without a sealer, and a sample
# sees it only by chance.
HELD = """
SELECT DISTINCT l.locktype || ' ' || coalesce(c.relname, '') || ' ' || l.mode FROM pg_locks l
JOIN pg_stat_activity a ON a.pid = l.pid LEFT JOIN pg_class c ON c.oid = l.relation
WHERE a.application_name = 'bench appender' AND l.locktype NOT IN ('virtualxid', 'extend')
"""


def run() -> dict[str, Any]:
    home = ROOT / "var" / "bench"
    home.mkdir(parents=True, exist_ok=True)
    environment = os.environ | {
        "DJANGO_SETTINGS_MODULE": "bench.settings",
        "HOLDPOINT_HOME": str(home),
        "LOG_LEVEL": "ERROR",
    }
    manage(environment, "migrate", "--noinput", "-v0")
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as database:
        phase(environment, database, seconds=3, sealer=True)  # warm-up: first entries, keys and plans
        alone = phase(environment, database, seconds=max(5, SECONDS // 3), sealer=False)
        phase(environment, database, seconds=5, sealer=True)  # seals what the phase without a sealer left
        together = phase(environment, database, seconds=SECONDS, sealer=True)
    new_locks = sorted(set(together.pop("locks")) - set(alone.pop("locks")))
    met = {
        "rate": together["per_s"] >= RATE * 0.99,
        "lag_under_2s": together["lag_max_s"] < GOAL_LAG_S,
        "no_lock_added": not new_locks and together["blocked_samples"] == alone["blocked_samples"] == 0,
    }
    return {
        "alone": alone,
        "with_sealer": together,
        "locks_only_with_sealer": ", ".join(new_locks) or "none",
        "met": met,
    }


def phase(
    environment: dict[str, str], database: psycopg.Connection[Any], *, seconds: int, sealer: bool
) -> dict[str, Any]:
    task = {"work": "append", "per_s": RATE / PROCESSES, "threads": THREADS, "seconds": seconds}
    workers = [start(WORKER, task, environment) for _ in range(PROCESSES)]
    sealing = {"work": "seal", "every": SEAL_EVERY, "seconds": seconds + 1}
    workers += [start(WORKER, sealing, environment)] if sealer else []
    for worker in workers:
        if read(worker) != "ready":
            raise RuntimeError("a process did not get ready")
    before, began = counters(database), time.monotonic()
    for worker in workers:
        write(worker, "go")
    seen = watched(database, until=began + seconds, lag=sealer)
    after = counters(database)
    reports = [json.loads(read(worker)) for worker in workers]
    for worker in workers:
        worker.wait(timeout=60)
    times = sorted(one for report in reports if "times" in report for one in report["times"])
    shown: dict[str, Any] = {
        "per_s": round(len(times) / seconds, 1),
        "p50_ms": round(statistics.median(times) * 1000, 2),
        "p99_ms": round(times[int(len(times) * 0.99)] * 1000, 2),
        "write_tx_per_append": round((after[0] - before[0]) / len(times), 3),
        "wal_bytes_per_append": round((after[1] - before[1]) / len(times)),
    }
    return shown | seen | (reports[-1] if sealer else {})


def watched(database: psycopg.Connection[Any], *, until: float, lag: bool) -> dict[str, Any]:
    """Samples what the appending processes wait for, which locks they have, and how far behind the sealer is."""
    waits: Counter[str] = Counter()
    locks: set[str] = set()
    lags: list[float] = []
    blocked = samples = 0
    while time.monotonic() < until:
        samples += 1
        waits.update(dict(database.execute(WAITS).fetchall()))
        locks.update(row[0] for row in database.execute(HELD).fetchall())
        blocked += one(database, BLOCKED)
        if lag:
            lags.append(one(database, LAG))
        time.sleep(SAMPLE_EVERY)
    shown: dict[str, Any] = {
        "samples": samples,
        "blocked_samples": int(blocked),
        "waits": " ".join(f"{name}x{count}" for name, count in waits.most_common(6)),
        "locks": locks,
    }
    if lag:
        shown |= {"lag_max_s": round(max(lags), 2), "lag_median_s": round(statistics.median(lags), 2)}
    return shown


def one(database: psycopg.Connection[Any], sql: str) -> float:
    row = database.execute(sql).fetchone()
    return float(row[0]) if row else 0.0


if __name__ == "__main__":
    print(json.dumps(run(), indent=2, default=sorted))
