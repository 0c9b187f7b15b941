"""A small closed-loop load generator: keep-alive clients in threads. Measures rates, times, commits and WAL bytes."""

import http.client
import json
import statistics
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import psycopg

Make = Callable[[int], tuple[str, dict[str, str], dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class Load:
    rate: float
    p50_ms: float
    p99_ms: float
    commits: float
    wal_bytes: float
    statuses: dict[int, int]

    @staticmethod
    def median(loads: "list[Load]") -> "Load":
        """The median of each figure over several rounds. The statuses are added up."""
        middle = {
            name: statistics.median(getattr(load, name) for load in loads)
            for name in ("rate", "p50_ms", "p99_ms", "commits", "wal_bytes")
        }
        return Load(**middle, statuses=dict(sum((Counter(load.statuses) for load in loads), Counter())))

    def as_json(self) -> dict[str, Any]:
        return {
            "per_s": round(self.rate, 1),
            "p50_ms": round(self.p50_ms, 1),
            "p99_ms": round(self.p99_ms, 1),
            "commits": round(self.commits, 2),
            "wal_bytes": round(self.wal_bytes),
            "statuses": " ".join(f"{status}x{count}" for status, count in sorted(self.statuses.items())),
        }


def drive(*, port: int, make: Make, requests: int, clients: int, database: psycopg.Connection[Any]) -> Load:
    """Sends all requests and measures them. `make(number)` returns path, headers and body of one request."""
    times: list[float] = []
    statuses: dict[int, int] = {}
    numbers = iter(range(requests))
    lock = threading.Lock()

    def client() -> None:
        link = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        while True:
            with lock:
                number = next(numbers, None)
            if number is None:
                return
            path, headers, body = make(number)
            started = time.perf_counter()
            link.request("POST", path, json.dumps(body), {"Content-Type": "application/json", **headers})
            answer = link.getresponse()
            answer.read()
            taken = time.perf_counter() - started
            with lock:
                times.append(taken)
                statuses[answer.status] = statuses.get(answer.status, 0) + 1

    before, started = counters(database), time.perf_counter()
    threads = [threading.Thread(target=client) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds, after = time.perf_counter() - started, counters(database)
    ordered = sorted(times)
    return Load(
        rate=requests / seconds,
        p50_ms=statistics.median(ordered) * 1000,
        p99_ms=ordered[int(len(ordered) * 0.99)] * 1000,
        commits=(after[0] - before[0]) / requests,
        wal_bytes=(after[1] - before[1]) / requests,
        statuses=statuses,
    )


def counters(database: psycopg.Connection[Any]) -> tuple[int, int]:
    """The number of write transactions and the WAL position."""
    # Only transactions that write get a transaction id, so the highest id does not count reads.
    database.execute("SELECT pg_stat_clear_snapshot()")
    row = database.execute(
        "SELECT (pg_snapshot_xmax(pg_current_snapshot()))::text::bigint,"
        " pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint"
    ).fetchone()
    if row is None:
        raise RuntimeError("no counters")
    return int(row[0]), int(row[1])
