"""Runs the simulator: one thread reads requests, several send answers. Nothing needs to survive a crash.

A request is acknowledged after its answers were accepted. Until then the consumer group keeps it, and the next reader
gives the same answers.
"""

import threading
import time
from collections import OrderedDict
from datetime import UTC, datetime

import structlog
from redis.exceptions import RedisError

from sdk.simulator.agenda import Agenda, AgendaItem, Delivery
from sdk.simulator.answers import Json, replies
from sdk.simulator.backoff import module_backoff
from sdk.simulator.behaviour import Behaviour
from sdk.simulator.services import NoServices, Registry, Returns
from sdk.simulator.stream_sender import StreamSender
from sdk.simulator.streams import Entry, Streams
from sdk.simulator.tally import ModuleTally
from sdk.simulator.web import SendResult, Web
from workflows.events.rules import envelope_problems

log = structlog.get_logger("holdpoint.modules")
# MOST_WAITING: beyond this the reader stops, and requests stay in Valkey instead of this process' memory. REMEMBERED:
# answered correlation ids; a request that is older than the last 100,000 would be answered again, with the same ids.
BATCH, MOST_WAITING, REMEMBERED = 100, 5_000, 100_000
BLOCK_MS, RECLAIM_SECONDS, REPORT_SECONDS, LOOK_SECONDS = 500, 5.0, 30.0, 5.0


class Simulator:
    def __init__(
        self,
        *,
        behaviour: Behaviour,
        streams: Streams,
        web: Web | StreamSender,
        organizations: frozenset[str],
        rate: float = 0.0,
        senders: int = 4,
        services: Registry | None = None,
    ) -> None:
        self.behaviour = behaviour
        self.streams = streams
        self.web = web
        self.organizations = organizations
        self.agenda = Agenda(rate=rate)
        self.tally = ModuleTally()
        self.senders = senders
        self.services = services or NoServices()
        self._returns: Returns = {}
        # Requests whose answers are not all sent. They are not taken again when the group reclaims them.
        self._under_way: dict[tuple[str, str], Delivery] = {}
        self._answered: OrderedDict[str, None] = OrderedDict()  # correlation ids (S4 4.6)
        # For the two above and `Delivery.left`: the reader and all senders change them.
        self._lock = threading.Lock()
        self.failures = 0
        self._look_at, self._reclaim_at, self._report_at = 0.0, 0.0, time.monotonic() + REPORT_SECONDS

    def run(self, stop: threading.Event) -> None:
        """Run until `stop`. Requests that are not answered by then stay with the consumer group."""
        threads = [threading.Thread(target=self._send_all, name=f"sender-{n}") for n in range(self.senders)]
        for thread in threads:
            thread.start()
        try:
            self._read_all(stop)
        finally:
            self.agenda.close()
            for thread in threads:
                thread.join()
            log.info("modules_stopped", waiting=len(self.agenda), **self.tally.reset())

    def _read_all(self, stop: threading.Event) -> None:
        """Read until `stop`. If Valkey is away, wait and try again."""
        while not stop.is_set():
            try:
                # Each time: a Valkey that came back may have lost its streams and groups.
                self.streams.prepare()
                self.failures = 0
                while not stop.is_set():
                    self._round(stop)
            except RedisError as error:
                if self.failures == 0:
                    log.warning("streams_away", error=type(error).__name__)
                stop.wait(module_backoff(self.failures))
                self.failures += 1
                self._report()

    def _round(self, stop: threading.Event) -> None:
        self._report()
        self._look()
        if len(self.agenda) > MOST_WAITING:
            stop.wait(0.1)
            return
        for entry in self.streams.read(count=BATCH, block_ms=BLOCK_MS):
            self.take(entry)
        if time.monotonic() >= self._reclaim_at:
            for entry in self.streams.reclaim(count=BATCH):
                self.take(entry)
            self._reclaim_at = time.monotonic() + RECLAIM_SECONDS

    def _look(self) -> None:
        """Which registered modules there are."""
        if time.monotonic() < self._look_at:
            return
        found = self.services.returns()
        self._look_at = time.monotonic() + LOOK_SECONDS
        if found is not None:
            self._returns = found
            if self.streams.follow(sorted(found)):
                self.streams.prepare()

    def _report(self) -> None:
        if time.monotonic() >= self._report_at:
            log.info("modules_metrics", waiting=len(self.agenda), **self.tally.reset())
            self._report_at = time.monotonic() + REPORT_SECONDS

    def take(self, entry: Entry) -> None:
        """Plan the answers to a request. Unreadable requests, those of other organizations and repetitions of a
        correlation id are acknowledged without an answer."""
        request = entry.envelope
        if request is None or envelope_problems(request):
            self._pass_over(entry, "unreadable")
            return
        if request["org_id"] not in self.organizations:
            self._pass_over(entry, "foreign")
            return
        with self._lock:
            # Reclaimed from ourselves because its answer takes long: it must not be acknowledged yet.
            if (entry.stream, entry.id) in self._under_way:
                return
            known = request["correlation_id"] in self._answered
        if known:
            self._pass_over(entry, "repeated")
            return
        self._plan(entry, request)

    def _plan(self, entry: Entry, request: Json) -> None:
        planned = replies(request, self.behaviour, at=datetime.now(UTC), returns=self._returns)
        if not planned:
            self._pass_over(entry, "noted")
            return
        delivery, now = Delivery(entry, len(planned)), time.monotonic()
        with self._lock:
            self._under_way[entry.stream, entry.id] = delivery
            self._answered[request["correlation_id"]] = None
            if len(self._answered) > REMEMBERED:
                self._answered.popitem(last=False)
        self.tally.add("requests")
        for reply in planned:
            self.agenda.put(AgendaItem(now + reply.after, reply.envelope, delivery))

    def _pass_over(self, entry: Entry, why: str) -> None:
        self.streams.acknowledge(entry)
        self.tally.add(why)

    def _send_all(self) -> None:
        while (due := self.agenda.take()) is not None:
            self._settle(due, self.web.send(due.envelope))

    def _settle(self, due: AgendaItem, sent: SendResult) -> None:
        if not sent.final:
            if due.tries == 0:
                log.warning("answer_not_taken", status=sent.status, correlation_id=due.envelope["correlation_id"])
            self.tally.add("sent_again")
            # Without a limit: the request stays unacknowledged, and the server's own pause counts if it named one.
            wait = sent.wait or module_backoff(due.tries)
            self.agenda.put(AgendaItem(time.monotonic() + wait, due.envelope, due.delivery, due.tries + 1))
            return
        self.tally.add("answers" if sent.taken else "refused")
        if not sent.taken:
            name, correlation = due.envelope["event_type"], due.envelope["correlation_id"]
            log.warning("answer_refused", status=sent.status, event_type=name, correlation_id=correlation)
        self._finish(due.delivery)

    def _finish(self, delivery: Delivery) -> None:
        with self._lock:
            delivery.left -= 1
            if delivery.left:
                return
            self._under_way.pop((delivery.entry.stream, delivery.entry.id), None)
        try:
            self.streams.acknowledge(delivery.entry)
        # The request is delivered again, recognized by its correlation id, and acknowledged then.
        except RedisError:
            self.tally.add("unacknowledged")
