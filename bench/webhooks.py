"""How late webhooks are, on a whole stack: events at a steady rate and in a burst, to endpoints that answer and one
that hangs; and how many deliveries one worker makes.

Late is from the event's row to its arrival at the receiver."""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from config.embedded.paths import PROJECT
from tests.stack.support import RunningStack, free_port, processes_of, wait_for

RATE = float(os.environ.get("BENCH_WEBHOOKS_RATE", "100"))
SECONDS = float(os.environ.get("BENCH_WEBHOOKS_SECONDS", "60"))
BURST = int(os.environ.get("BENCH_WEBHOOKS_BURST", "540"))
MANY = int(os.environ.get("BENCH_WEBHOOKS_MANY", "3000"))
GOAL_SECONDS = 2.0


class Receiver:
    """Answers at once under `/good…`; under `/hang` it takes the request and keeps silent."""

    def __init__(self) -> None:
        receiver = self
        self.late: list[float] = []
        self.hung = 0
        self.lock = threading.Lock()

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
                if self.path == "/hang":
                    receiver.hung += 1
                    time.sleep(120)
                    return
                with receiver.lock:
                    receiver.late.append(time.time() - body["data"]["made_at"])
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                return

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

        self.server = Server(("127.0.0.1", free_port()), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server.server_address[1]}"

    def taken(self) -> list[float]:
        with self.lock:
            found, self.late = self.late, []
        return sorted(found)


def run() -> dict[str, Any]:
    folder = Path(tempfile.mkdtemp(prefix="hpw", dir="/tmp"))  # short: it holds the servers' sockets
    folder.chmod(0o755)
    receiver = Receiver()
    stack = RunningStack(folder / "home", variables={"HOLDPOINT_WEBHOOK_ALLOW_PRIVATE": receiver.address})
    try:
        stack.start()
        return measured(stack, receiver)
    finally:
        if stack.process is not None:
            stack.finish(seconds=60)
        wait_for(lambda: not processes_of(stack.home), seconds=20, what="everything ended")
        shutil.rmtree(folder)
        receiver.server.shutdown()


def measured(stack: RunningStack, receiver: Receiver) -> dict[str, Any]:
    events(stack, "endpoints", receiver.address, "--good")
    found: dict[str, Any] = {"all_answer": steady(stack, receiver)}
    found["as_many_as_possible"] = burst(stack, receiver, MANY)
    events(stack, "endpoints", receiver.address, "--hang")
    found["one_hangs"] = steady(stack, receiver)
    found["burst_while_one_hangs"] = burst(stack, receiver, BURST)
    found["requests_that_hung"] = receiver.hung
    found["goal_met"] = found["one_hangs"]["late_p95_s"] < GOAL_SECONDS
    return found


def steady(stack: RunningStack, receiver: Receiver) -> dict[str, Any]:
    receiver.taken()
    spent, began = spent_by(stack), time.monotonic()
    count = int(events(stack, "steady", str(RATE), str(SECONDS)))
    arrived(receiver, count)
    seconds = time.monotonic() - began
    used = {f"{name}_percent": round(100 * (now - spent[name]) / seconds, 1) for name, now in spent_by(stack).items()}
    return {"events_per_s": RATE, **figures(receiver, count), **used}


def burst(stack: RunningStack, receiver: Receiver, count: int) -> dict[str, Any]:
    receiver.taken()
    began = time.monotonic()
    events(stack, "burst", str(count))
    arrived(receiver, count)
    # Without the start of the program that makes the events: the first one was as late as it says.
    last = max(receiver.late)
    return {**figures(receiver, count), "per_s": round(count / last, 1), "in_all_s": round(time.monotonic() - began, 1)}


def arrived(receiver: Receiver, count: int) -> None:
    wait_for(lambda: len(receiver.late) >= count, seconds=300, what=f"{count} deliveries")


def figures(receiver: Receiver, count: int) -> dict[str, Any]:
    late = receiver.taken()
    return {
        "events": count,
        "late_p50_s": round(statistics.median(late), 3),
        "late_p95_s": round(late[int(len(late) * 0.95)], 3),
        "late_max_s": round(late[-1], 3),
        "twice": len(late) - count,
    }


def spent_by(stack: RunningStack) -> dict[str, float]:
    """Processor seconds of the lane's worker and of PostgreSQL."""
    found = {"webhooks": 0.0, "postgres": 0.0}
    for process in processes_of(stack.home):
        name = process.name()
        role = "webhooks" if name == "hp-webhooks" else "postgres" if "postgres" in name else ""
        if role:
            found[role] += sum(process.cpu_times()[:4])
    return found


def events(stack: RunningStack, *words: str) -> str:
    command = [sys.executable, "-m", "bench.webhooks_events", *words]
    environment = stack.environment(**stack.variables)
    done = subprocess.run(command, cwd=PROJECT, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return done.stdout


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))
