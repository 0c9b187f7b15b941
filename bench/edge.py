"""Health and intake while clients hold the web server up: silent sockets, half-sent heads, stalled bodies, wrong
passwords. The web server as `make run` starts it."""

import json
import os
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from bench.intake import ROOT, free_port, manage, start
from tests.config.edge_clients import Edge, ask, guessers, sockets

TIMES = int(os.environ.get("BENCH_EDGE_TIMES", "150"))
GOAL_SECONDS = 1.0
HALF = b"POST /api/v1/events HTTP/1.1\r\nHost: 127."


def run() -> dict[str, Any]:
    home = ROOT / "var" / "bench"
    home.mkdir(parents=True, exist_ok=True)
    environment = os.environ | {"DJANGO_SETTINGS_MODULE": "config.settings.local", "HOLDPOINT_HOME": str(home)}
    manage(environment, "migrate", "--noinput", "-v0")
    port = free_port()
    edge = Edge(port, json.loads(manage(environment, "demo", "--json")))
    server = start(environment, port)
    try:
        attacks: dict[str, AbstractContextManager[Any]] = {
            "calm": nullcontext(),
            "500 silent sockets": sockets(edge, 500, lambda: b""),
            "500 half-sent heads": sockets(edge, 500, lambda: HALF),
            "200 stalled bodies": sockets(edge, 200, lambda: edge.head("Content-Length: 500") + b"ten bytes!"),
            "24 threads of wrong passwords": guessers(edge, 24),
        }
        return {what: measured(edge, attack) for what, attack in attacks.items()}
    finally:
        server.terminate()
        server.wait(timeout=20)


def measured(edge: Edge, attack: AbstractContextManager[Any]) -> dict[str, Any]:
    ask(edge, times=5)
    with attack:
        asked = ask(edge, times=TIMES, pause=0.02)
    figures = {
        f"{name}_p{share:.0%}_ms".replace("%", ""): round(seconds * 1000, 1)
        for share in (0.5, 0.99)
        for name, seconds in asked.of(share).items()
    }
    worst = max(asked.of(0.99).values(), default=float("inf"))
    return figures | {"unanswered": len(asked.faults), "goal_met": not asked.faults and worst < GOAL_SECONDS}


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))
