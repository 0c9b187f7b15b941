"""A consumer of the inbound streams: reads messages, receives them, acknowledges them. Several may run; each message
goes to one.

A consumer can be killed at any moment: another one claims what it did not acknowledge, and an event that was received
before is recognized by its event_id.
"""

import threading
import time
from collections.abc import Callable
from datetime import datetime

import structlog
from django.db import Error, InterfaceError, OperationalError, connection
from redis.exceptions import RedisError

from workflows.events.adapters.streams import Inbox, StreamMessage
from workflows.events.services.messages import Fate, message_take
from workflows.runs.services.metrics import MESSAGE_SECONDS, MESSAGES

log = structlog.get_logger("holdpoint.consumer")
# Small batches and short waits, so that `stop` is noticed within half a second and little has to be given back.
BATCH, BLOCK_MS = 20, 500
# Seconds between tries while Valkey or the database is away.
FIRST_WAIT, LONGEST_WAIT = 0.25, 10.0
# How soon the answers of a module that was just registered are read.
FOLLOW_SECONDS = 5.0


def _consumer_backoff(tries: int) -> float:
    return float(min(FIRST_WAIT * 2 ** min(tries, 10), LONGEST_WAIT))


class EventConsumer:
    def __init__(self, *, inbox: Inbox, now: Callable[[], datetime], region: str, stop: threading.Event) -> None:
        self.inbox = inbox
        self.now = now
        self.region = region
        self.stop = stop
        self.taken = 0
        self._failures = 0
        self._claim_at = self._follow_at = 0.0

    def run(self) -> None:
        """Run until `stop`. If Valkey is away the consumer waits and tries again; it does not end."""
        while not self.stop.is_set():
            try:
                self.inbox.prepare()  # again after every outage: Valkey may have come back without its data
                while not self.stop.is_set():
                    self.round()
                    self._failures = 0
            except RedisError as error:
                if self._failures == 0:
                    log.warning("streams_away", error=type(error).__name__)
                self.stop.wait(_consumer_backoff(self._failures))
                self._failures += 1

    def round(self, *, block_ms: int = BLOCK_MS) -> None:
        if time.monotonic() >= self._claim_at:
            self._claim()
        if time.monotonic() >= self._follow_at:
            self._follow_at = time.monotonic() + FOLLOW_SECONDS
            self._follow()
        messages = self.inbox.read(count=BATCH, block_ms=block_ms)
        for number, message in enumerate(messages):
            if self.stop.is_set():
                self.inbox.give_back(messages[number:])
                return
            self._handle(message)

    def _claim(self) -> None:
        for message in self.inbox.claim():
            self._handle(message)
            if self.stop.is_set():
                return
        # Twice per claim time, so that an abandoned message waits at most one and a half times as long.
        self._claim_at = time.monotonic() + self.inbox.claim_after_ms / 2000

    def _follow(self) -> None:
        """Modules may have been registered. While the database is away, the streams that are known are enough."""
        try:
            self.inbox.follow()
        except (OperationalError, InterfaceError) as error:
            log.warning("registry_away", error=type(error).__name__)
            connection.close()

    def _handle(self, message: StreamMessage) -> None:
        """Receive one message. While the database is away, wait with it. If it fails otherwise, leave it with the
        group: it is claimed later, and parked after too many deliveries."""
        # A lost connection or a deadlock looks like an outage, but the database answers: one more try at once.
        tries, again = 0, True
        while True:
            try:
                fate = message_take(message=message, at=self.now(), region=self.region)
            except (OperationalError, InterfaceError) as error:
                if _database_answers():
                    if not again:
                        return self._left(message, error)
                    again = False
                    continue
                if tries == 0:
                    log.warning("database_away", error=type(error).__name__)
                if self.stop.wait(_consumer_backoff(tries)):
                    return self.inbox.give_back([message])
                tries += 1
            except Exception as error:
                return self._left(message, error)
            else:
                return self._done(message, fate)

    def _done(self, message: StreamMessage, fate: Fate) -> None:
        self.inbox.acknowledge(message)
        self.taken += 1
        MESSAGES.labels(message.event_type, fate.value).inc()
        MESSAGE_SECONDS.observe(max(0.0, self.now().timestamp() - message.written_at))
        if fate is Fate.PARKED:
            log.warning("message_parked", event_type=message.event_type, entry_id=message.entry_id)

    @staticmethod
    def _left(message: StreamMessage, error: Exception) -> None:
        MESSAGES.labels(message.event_type, "failed").inc()
        log.error("message_failed", event_type=message.event_type, entry_id=message.entry_id, exc_info=error)


def _database_answers() -> bool:
    """Whether the database answers on a new connection: perhaps only the old connection is broken."""
    connection.close()
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except Error:
        connection.close()
        return False
    return True
