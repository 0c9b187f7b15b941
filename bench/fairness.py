"""Fair turns on a whole stack: one organization sends 500 calls of a second, then others send five each.

How long the calls of the others wait, from the answer to their request until the receiver has them, compared with what
they wait alone on a stack with only their share of the places.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx

from config.embedded.paths import PROJECT
from tests.stack.support import RunningStack, processes_of, wait_for

CALLS, OTHERS_CALLS = int(os.environ.get("BENCH_FAIRNESS_CALLS", "500")), 5
SECONDS = float(os.environ.get("BENCH_FAIRNESS_SECONDS", "1"))
TENANTS = [int(number) for number in os.environ.get("BENCH_FAIRNESS_TENANTS", "2,10").split(",")]
PLACES = 16  # of the lane that calls receivers
CLIENTS = 8
LONGEST = 180.0
# A worker that is free looks for work when it is told to, not before: this much is no unfairness.
LEAST = 1.0


class Receiver:
    """Takes its time for each call, and writes down when each one came."""

    def __init__(self) -> None:
        receiver = self
        self.came: dict[str, float] = {}

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                receiver.came.setdefault(self.headers["webhook-id"], time.monotonic())
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                time.sleep(SECONDS)
                self.send_response(200)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *_: Any) -> None:
                return

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}/hook"

    def stop(self) -> None:
        self.server.shutdown()
        self.server.server_close()


class Stack:
    """A whole stack with so many places, and the organizations' keys."""

    def __init__(self, *, places: int, tenants: int, receiver: Receiver) -> None:
        # A short path: it holds the servers' sockets.
        self.folder = Path(tempfile.mkdtemp(prefix="hpf", dir="/tmp"))
        self.folder.chmod(0o755)
        variables = {"HOLDPOINT_DEMO_TARGET": receiver.url, "HOLDPOINT_LANE_ADAPTERS": str(places)}
        self.stack, self.receiver = RunningStack(self.folder / "home", variables=variables), receiver
        self.tenants, self.number = tenants, 0

    def __enter__(self) -> "Stack":
        try:
            self._begin()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _begin(self) -> None:
        self.stack.start()
        command = [sys.executable, "-m", "bench.fairness_setup", str(self.tenants)]
        environment = self.stack.environment(**self.stack.variables)
        done = subprocess.run(command, cwd=PROJECT, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        self.keys: list[str] = json.loads(done.stdout.splitlines()[-1])

    def __exit__(self, *_: object) -> None:
        if self.stack.process is not None:
            self.stack.process.send_signal(signal.SIGTERM)
            self.stack.process.wait(timeout=90)
        wait_for(lambda: not processes_of(self.stack.home), seconds=30, what="everything ended")
        shutil.rmtree(self.folder)

    def send(self, tenant: int, calls: int) -> dict[str, float]:
        """When each of the attempts was accepted."""
        numbers = range(self.number, self.number + calls)
        self.number += calls
        headers = {"Authorization": f"Bearer {self.keys[tenant]}"}

        def one(client: httpx.Client, number: int) -> tuple[str, float]:
            action = {"operation": "call", "target_ref": f"call-{number}", "risk_tier": "low", "fields": []}
            body = {"patient_context_ref": f"ctx-{number:06}", "action": action}
            headers = {"Idempotency-Key": f"key-{tenant}-{number:08}"}
            answer = client.post("/api/v1/execution/calls/1/attempts", json=body, headers=headers)
            assert answer.status_code == 201, answer.text
            return answer.json()["id"], time.monotonic()

        with (
            httpx.Client(base_url=self.stack.base_url, headers=headers, timeout=60) as client,
            ThreadPoolExecutor(CLIENTS) as pool,
        ):
            return dict(pool.map(lambda number: one(client, number), numbers))

    def waits(self, accepted: dict[str, float]) -> list[float]:
        """How long each of them waited for a place."""
        came = self.receiver.came
        wait_for(lambda: all(id_ in came for id_ in accepted), seconds=LONGEST, what="all calls at the receiver")
        return sorted(max(0.0, came[id_] - at) for id_, at in accepted.items())


def p95(waits: Sequence[float]) -> float:
    return waits[min(len(waits) - 1, int(len(waits) * 0.95))]


def alone(tenants: int, receiver: Receiver) -> float:
    """What five calls wait with nobody else, on a stack with the share of one of so many tenants."""
    with Stack(places=max(1, PLACES // tenants), tenants=1, receiver=receiver) as stack:
        stack.waits(stack.send(0, 1))  # the receiver is known to be quick
        return p95(stack.waits(stack.send(0, OTHERS_CALLS)))


def beside(stack: Stack, tenants: int) -> dict[str, Any]:
    """What the others wait while the first one's calls are worked off."""
    first = stack.send(0, CALLS)
    with ThreadPoolExecutor(tenants) as pool:
        sent = list(pool.map(lambda tenant: stack.send(tenant, OTHERS_CALLS), range(1, tenants)))
    worst = max(p95(stack.waits(one)) for one in sent)
    came = stack.receiver.came
    left = sum(id_ not in came for id_ in first)
    waits = stack.waits(first)
    return {"others_p95_s": round(worst, 2), "first_p95_s": round(p95(waits), 2), "first_left_then": left}


def run() -> dict[str, Any]:
    receiver, figures = Receiver(), dict[str, Any]()
    try:
        with Stack(places=PLACES, tenants=max(TENANTS), receiver=receiver) as stack:
            for tenants in TENANTS:
                figures[f"{tenants}_tenants"] = beside(stack, tenants)
        for tenants in TENANTS:
            share = alone(tenants, receiver)
            found = figures[f"{tenants}_tenants"]
            found["alone_with_its_share_p95_s"] = round(share, 2)
            found["goal_met"] = found["others_p95_s"] <= 2 * max(share, LEAST)
    finally:
        receiver.stop()
    return figures


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))
