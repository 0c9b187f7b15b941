"""A process of the stream tests: forks consumers and relays, kills one of them with -9 again and again, and starts
another in its place. `calm` on standard input ends the killing, its end ends all; prints what it did. Not a test."""

import json
import os
import random
import select
import signal
import sys
import threading
import time
from typing import Any

import django


def consume(order: dict[str, Any], stop: threading.Event) -> None:
    from django.utils import timezone

    from workflows.events.adapters.streams import Inbox
    from workflows.events.commands import EventConsumer

    inbox = Inbox(consumer=f"gang-{os.getpid()}", claim_after_ms=order["claim_after_ms"])
    EventConsumer(inbox=inbox, now=timezone.now, region="US", stop=stop).run()


def relay(order: dict[str, Any], stop: threading.Event) -> None:
    """What a worker does: the relay, and the ticks that release what had to wait."""
    from django.utils import timezone

    from reasoncodes.base.tenancy import every_tenant
    from workflows.events.services.outbox import outbox_relay
    from workflows.runs.services.clock import signals_due, step_retries_due
    from workflows.runs.services.dispatch import instances_dispatch

    ticks_at = 0.0
    with every_tenant():
        while not stop.is_set():
            outbox_relay(at=timezone.now())
            if time.monotonic() > ticks_at:
                for tick in (step_retries_due, instances_dispatch, signals_due):
                    tick(at=timezone.now(), region="US")
                ticks_at = time.monotonic() + 1
            stop.wait(0.02)


WORK = {"consumer": consume, "relay": relay}


class Gang:
    def __init__(self, order: dict[str, Any]) -> None:
        self.order = order
        self.dice = random.Random(order["seed"])
        self.children: dict[int, str] = {}
        self.kills, self.crashes = 0, 0

    def run(self) -> None:
        for name in [*["consumer"] * self.order["consumers"], *["relay"] * self.order["relays"]]:
            self._start(name)
        killing = True
        while True:
            wait = self.dice.uniform(*self.order["kill_every"])
            if select.select([sys.stdin], [], [], wait)[0]:
                if not sys.stdin.readline():
                    break
                killing = False
            self._reap()
            if killing:
                pid = self.dice.choice(list(self.children))
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                self.kills += 1
                self._start(self.children.pop(pid))

    def _start(self, name: str) -> None:
        pid = os.fork()
        if pid:
            self.children[pid] = name
            return
        stop = threading.Event()
        signal.signal(signal.SIGTERM, lambda *_: stop.set())
        try:
            WORK[name](self.order, stop)
            os._exit(0)
        except BaseException as error:
            print(f"{name} crashed: {error!r}", file=sys.stderr, flush=True)  # noqa: T201
            os._exit(1)

    def _reap(self) -> None:
        """Nobody ends by itself: a server that is away is no reason."""
        for pid in list(self.children):
            if os.waitpid(pid, os.WNOHANG)[0]:
                self.crashes += 1
                self._start(self.children.pop(pid))

    def end(self) -> dict[str, int]:
        for pid in self.children:
            os.kill(pid, signal.SIGTERM)
        codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in self.children]
        return {"kills": self.kills, "crashes": self.crashes + sum(code != 0 for code in codes)}


def main() -> int:
    django.setup()

    gang = Gang(json.loads(sys.stdin.readline()))
    gang.run()
    print(json.dumps(gang.end()))  # noqa: T201 - its report
    return 0


if __name__ == "__main__":
    sys.exit(main())
