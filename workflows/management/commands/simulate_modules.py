"""Plays consent, clinical-api, ai-review and human-review: reads requests from the streams, answers through the API
or, with --via stream, on the streams.

Every option can also come from the environment: --failure-rate from HOLDPOINT_MODULES_FAILURE_RATE, and so on. Runs
until SIGTERM. Refused under production settings: there, answers come from the modules themselves.
"""

import os
import signal
import socket
import threading
from argparse import ArgumentParser
from typing import Any

import structlog
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from sdk.simulator.behaviour import CONFIDENCES, MODULES, Behaviour, modules_named, requests_of
from sdk.simulator.reviewers import Reviewer
from sdk.simulator.runner import Simulator
from sdk.simulator.services import NoServices, Services
from sdk.simulator.stream_sender import StreamSender
from sdk.simulator.streams import Streams
from sdk.simulator.web import Web

log = structlog.get_logger("holdpoint.modules")
NUMBERS: dict[str, tuple[float, str]] = {
    "latency": (50, "mean milliseconds until an answer"),
    "jitter": (0.5, "how far latencies spread around the mean, 0 to 1"),
    "failure-rate": (0, "share of negative or failed answers"),
    "retryable-share": (0.5, "share of the failures that may be tried again"),
    "duplicate-rate": (0, "share of answers that are sent twice"),
    "reorder-rate": (0, "share of answers that let others overtake them"),
    "late-rate": (0, "share of answers that come --late-seconds late"),
    "late-seconds": (90, "how late"),
    "rate": (0, "most answers per second; 0: as they come"),
    "seed": (0, "the same seed, the same answers"),
    "senders": (4, "answers sent at once"),
}
TEXTS: dict[str, str] = {
    "url": "of Holdpoint, such as http://127.0.0.1:8000",
    "key": "API key with orchestrator:write; better in the environment, where other accounts do not see it",
    "organization": "id of the organization whose requests are answered; several with commas",
}


def from_environment(name: str, default: str) -> str:
    return os.environ.get(f"HOLDPOINT_MODULES_{name.upper().replace('-', '_')}", default)


class Command(BaseCommand):
    help = __doc__ or ""
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        for name, text in TEXTS.items():
            parser.add_argument(f"--{name}", default=from_environment(name, ""), help=text)
        for name, (default, text) in NUMBERS.items():
            parser.add_argument(f"--{name}", type=float, default=from_environment(name, str(default)), help=text)
        parser.add_argument(
            "--modules",
            default=os.environ.get("HOLDPOINT_MODULES", ""),
            help=f"some of {', '.join(MODULES)}; left out: all, and the registered ones",
        )
        parser.add_argument(
            "--via", choices=("http", "stream"), default=from_environment("via", "http"), help="how answers travel"
        )
        parser.add_argument("--confidence", choices=CONFIDENCES, default=from_environment("confidence", "random"))
        parser.add_argument(
            "--reviewers",
            action="store_true",
            default=bool(from_environment("reviewers", "")),
            help="also decide in Holdpoint's own review queue, as HOLDPOINT_MODULES_REVIEWER with _REVIEWER_PASSWORD",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if not settings.DEMO_ALLOWED:
            raise CommandError("Simulated answers are refused under production settings.")
        missing = [f"--{name}" for name in TEXTS if not options[name]]
        if missing:
            raise CommandError(f"Missing: {', '.join(missing)}.")
        try:
            simulator = make_simulator(options)
        except ValueError as error:
            raise CommandError(f"{error}.") from error
        reviewer = make_reviewer(options) if options["reviewers"] else None
        stop = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        log.info("modules_started", streams=len(simulator.streams.names), reviewers=options["reviewers"])
        simulate_until_stopped(simulator, reviewer, stop)


def simulate_until_stopped(simulator: Simulator, reviewer: Reviewer | None, stop: threading.Event) -> None:
    threads = [threading.Thread(target=reviewer.run, args=[stop], name="reviewer")] if reviewer else []
    for thread in threads:
        thread.start()
    try:
        simulator.run(stop)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
        simulator.web.close()
        simulator.services.close()
        simulator.streams.close()


def make_simulator(options: dict[str, Any]) -> Simulator:
    behaviour = Behaviour(
        latency_ms=options["latency"],
        jitter=options["jitter"],
        failure_rate=options["failure_rate"],
        retryable_share=options["retryable_share"],
        duplicate_rate=options["duplicate_rate"],
        reorder_rate=options["reorder_rate"],
        late_rate=options["late_rate"],
        late_seconds=options["late_seconds"],
        confidence=options["confidence"],
        seed=int(options["seed"]),
    )
    event_types = requests_of(modules_named(options["modules"]))
    consumer = f"{socket.gethostname()}-{os.getpid()}"
    return Simulator(
        behaviour=behaviour,
        streams=Streams(url=settings.REDIS_URL, event_types=event_types, consumer=consumer),
        web=StreamSender(url=settings.REDIS_URL, key=options["key"])
        if options["via"] == "stream"
        else Web(url=options["url"], key=options["key"]),
        organizations=frozenset(name.strip() for name in options["organization"].split(",")),
        rate=options["rate"],
        senders=max(1, int(options["senders"])),
        services=Services(url=options["url"], key=options["key"]) if not options["modules"] else NoServices(),
    )


def make_reviewer(options: dict[str, Any]) -> Reviewer:
    username, password = from_environment("reviewer", ""), from_environment("reviewer-password", "")
    if not username or not password:
        raise CommandError("--reviewers needs HOLDPOINT_MODULES_REVIEWER and HOLDPOINT_MODULES_REVIEWER_PASSWORD.")
    return Reviewer(url=options["url"], username=username, password=password, seed=int(options["seed"]))
