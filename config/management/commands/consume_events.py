"""Reads the events that modules send on the streams. Runs until SIGTERM, and then finishes the current message.

Start as many as you need, on any machine: each message goes to one consumer. If a consumer is killed, the others take
its messages over after --claim-after seconds.
"""

import os
import signal
import socket
import threading
from argparse import ArgumentParser
from secrets import token_hex
from typing import Any

import structlog
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from config.startup import serving
from workflows.events.adapters.streams import Inbox
from workflows.events.commands import EventConsumer
from workflows.modules.selectors import module_answer_types

log = structlog.get_logger("holdpoint.consumer")
# Longer than handling one message takes. Shorter would only mean work done twice: an event id is used once.
CLAIM_AFTER_SECONDS = 15.0


class Command(BaseCommand):
    help = __doc__ or ""
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--claim-after",
            type=float,
            default=CLAIM_AFTER_SECONDS,
            help="seconds after which a message that another consumer has not finished is taken over",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["claim_after"] <= 0:
            raise CommandError("--claim-after must be more than nothing.")
        stop = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            # A flag instead of an exception: a message must not be cut off between its commit and its acknowledgement.
            signal.signal(number, lambda *_: stop.set())
        serving()
        # A name per process: two consumers with one name would share their pending messages.
        name = f"{socket.gethostname()}-{os.getpid()}-{token_hex(3)}"
        after_ms = int(options["claim_after"] * 1000)
        inbox = Inbox(consumer=name, claim_after_ms=after_ms, more=module_answer_types)
        consumer = EventConsumer(inbox=inbox, now=timezone.now, region=settings.DEPLOYMENT_REGION, stop=stop)
        log.info("consumer_started", streams=len(inbox.types))
        consumer.run()
        log.info("consumer_stopped", messages=consumer.taken)
