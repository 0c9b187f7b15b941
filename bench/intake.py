"""Intake over HTTP, compared in the same run with a bare DRF view that inserts one row, and with PostgreSQL alone
inserting the same rows."""

import json
import os
import socket
import statistics
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import psycopg

from bench.load import Load, Make, drive
from bench.pgbench import same_rows_alone

ROOT = Path(__file__).resolve().parent.parent
# Every round measures every kind of request, so that a busy machine is busy for all of them.
ROUNDS = 5
REQUESTS = int(os.environ.get("BENCH_REQUESTS", "1500")) // ROUNDS
WARM_UP = 200
CLIENTS = 8
GOALS = {"allow": 0.5, "replay": 1.0, "closed": 2.0}
MOST_WAL, MOST_STATEMENTS, MOST_COMMITS = 4096, 6, 2


def run() -> dict[str, Any]:
    home = ROOT / "var" / "bench"
    home.mkdir(parents=True, exist_ok=True)
    environment = os.environ | {
        "DJANGO_SETTINGS_MODULE": "bench.settings",
        "HOLDPOINT_HOME": str(home),
        "LOG_LEVEL": "INFO",  # as in production: writing the log lines is part of the cost
    }
    manage(environment, "migrate", "--noinput", "-v0")
    demo = json.loads(manage(environment, "demo", "--json"))
    database = psycopg.connect(os.environ["DATABASE_URL"], autocommit=True)
    database.execute("CREATE TABLE IF NOT EXISTS bench_bare (id bigserial PRIMARY KEY, context text, action text)")
    port = free_port()
    server = start(environment, port)
    try:
        rounds = measure(port, demo, database)
        alone = same_rows_alone(database, clients=CLIENTS, transactions=REQUESTS)
        inside = json.loads(python(environment, "-m", "bench.intake_inside", json.dumps(demo)))
        return figures(rounds, alone, inside)
    finally:
        server.terminate()
        server.wait(timeout=20)
        database.close()


def measure(port: int, demo: dict[str, Any], database: psycopg.Connection[Any]) -> list[dict[str, Load]]:
    """One dictionary per round. `replay` sends the keys that `allow` has just used."""
    stamp = str(time.time_ns())

    def drives(made: str, requests: int) -> dict[str, Load]:
        makes = kinds(demo, f"{stamp}-{made}")
        return {
            name: drive(port=port, make=make, requests=requests, clients=CLIENTS, database=database)
            for name, make in makes.items()
        }

    # Fills caches. Also, PostgreSQL logs a whole page at its first change after a checkpoint; without the warm-up the
    # first round would have more WAL.
    drives("warm-up", WARM_UP)
    return [drives(f"round-{number}", REQUESTS) for number in range(ROUNDS)]


def kinds(demo: dict[str, Any], stamp: str) -> dict[str, Make]:
    body, key = demo["attempt_example"], demo["keys"]["caller"]

    def attempt(slug: str) -> Make:
        def make(number: int) -> tuple[str, dict[str, str], dict[str, Any]]:
            headers = {
                "Authorization": f"Bearer {key}",
                "Idempotency-Key": str(uuid5(NAMESPACE_URL, f"{stamp}-{slug}-{number}")),
            }
            chosen = body | {"patient_context_ref": f"ctx-{number:06d}", "runtime_mode": "shadow"}
            return f"/api/v1/execution/{slug}/1/attempts", headers, chosen

        return make

    return {
        "bare": lambda number: ("/bench/bare", {}, body),
        "allow": attempt("demo-allow"),
        "hold": attempt("demo-hold"),
        "replay": attempt("demo-allow"),
        "closed": attempt("demo-closed"),
    }


def figures(rounds: list[dict[str, Load]], alone: dict[str, Any], inside: dict[str, Any]) -> dict[str, Any]:
    """Medians over the rounds. Ratios are computed in each round before taking their median."""
    names = list(rounds[0])
    loads = {name: Load.median([measured[name] for measured in rounds]) for name in names}
    ratios = {
        name: round(statistics.median(measured[name].rate / measured["bare"].rate for measured in rounds), 2)
        for name in names
        if name != "bare"
    }
    allow = loads["allow"]
    met = {name: ratios[name] >= goal for name, goal in GOALS.items()} | {
        "replay_faster_than_allow": ratios["replay"] > ratios["allow"],
        "one_commit": round(allow.commits) == 1,
        "wal": allow.wal_bytes <= MOST_WAL,
        "statements": inside["statements"]["allow"] <= MOST_STATEMENTS,
        "commits_to_completed": inside["commits_to_completed_besides_the_intent"] <= MOST_COMMITS,
    }
    return {
        **{name: load.as_json() for name, load in loads.items()},
        "ratio_to_bare": ratios,
        "postgresql_alone": alone | {"ratio_of_allow": round(allow.rate / alone["per_s"], 2)},
        **inside,
        "goal_met": met,
    }


def manage(environment: dict[str, str], *arguments: str) -> str:
    return python(environment, str(ROOT / "manage.py"), *arguments)


def python(environment: dict[str, str], *arguments: str) -> str:
    command = [sys.executable, *arguments]
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True, cwd=ROOT).stdout


def start(environment: dict[str, str], port: int) -> "subprocess.Popen[bytes]":
    gunicorn = Path(sys.executable).parent / "gunicorn"
    server = subprocess.Popen(
        [str(gunicorn), "-c", "config/server/gunicorn.py", "--no-control-socket", "config.wsgi:application"],
        env=environment | {"HOLDPOINT_BIND": f"127.0.0.1:{port}"},
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    for _ in range(100):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=1)
            return server
        except OSError:
            time.sleep(0.2)
    server.kill()
    raise RuntimeError("the server did not start")


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))
