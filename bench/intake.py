"""Intake through HTTP beside a bare DRF view that inserts one row, on the same server, in the same run."""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import psycopg

from bench.load import Load, drive

ROOT = Path(__file__).resolve().parent.parent
REQUESTS = int(os.environ.get("BENCH_REQUESTS", "1500"))
CLIENTS = 8
GOALS = {"allow": 0.5, "replay": 1.0, "closed": 2.0}


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
    database.execute("CREATE TABLE IF NOT EXISTS bench_bare (id bigserial PRIMARY KEY, context text, action text)")
    port = free_port()
    server = start(environment, port)
    try:
        return figures(measure(port, demo, database))
    finally:
        server.terminate()
        server.wait(timeout=20)
        database.close()


def measure(port: int, demo: dict[str, Any], database: psycopg.Connection[Any]) -> dict[str, Load]:
    body, key = demo["attempt_example"], demo["keys"]["caller"]

    def attempt(slug: str, stamp: str):  # type: ignore[no-untyped-def]
        def make(number: int) -> tuple[str, dict[str, str], dict[str, Any]]:
            headers = {
                "Authorization": f"Bearer {key}",
                "Idempotency-Key": f"bench-{stamp}-{number:08d}",
            }
            chosen = body | {"patient_context_ref": f"ctx-{number:06d}", "runtime_mode": "shadow"}
            return f"/api/v1/execution/{slug}/1/attempts", headers, chosen

        return make

    def bare(number: int) -> tuple[str, dict[str, str], dict[str, Any]]:
        return "/bench/bare", {}, body

    stamp = str(time.time_ns())
    kinds = {
        "bare": bare,
        "allow": attempt("demo-allow", f"allow-{stamp}"),
        "hold": attempt("demo-hold", f"hold-{stamp}"),
        "replay": attempt("demo-allow", f"replay-{stamp}"),
        "closed": attempt("demo-closed", f"closed-{stamp}"),
    }
    found = {}
    for make in kinds.values():
        drive(port=port, make=make, requests=50, clients=CLIENTS, database=database)
    kinds["allow"] = attempt("demo-allow", f"allow2-{stamp}")
    kinds["hold"] = attempt("demo-hold", f"hold2-{stamp}")
    kinds["replay"] = attempt("demo-allow", f"allow2-{stamp}")  # the keys that `allow` has just used, one by one
    for name, make in kinds.items():
        found[name] = drive(port=port, make=make, requests=REQUESTS, clients=CLIENTS, database=database)
    return found


def figures(loads: dict[str, Load]) -> dict[str, Any]:
    bare = loads["bare"].rate
    ratios = {name: round(load.rate / bare, 2) for name, load in loads.items() if name != "bare"}
    met = {name: ratios[name] >= goal for name, goal in GOALS.items()}
    return {name: load.as_json() for name, load in loads.items()} | {"ratio_to_bare": ratios, "goal_met": met}


def manage(environment: dict[str, str], *arguments: str) -> str:
    command = [sys.executable, str(ROOT / "manage.py"), *arguments]
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True, cwd=ROOT).stdout


def start(environment: dict[str, str], port: int) -> "subprocess.Popen[bytes]":
    gunicorn = Path(sys.executable).parent / "gunicorn"
    server = subprocess.Popen(
        [str(gunicorn), "-c", "config/gunicorn.py", "--no-control-socket", "config.wsgi:application"],
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
