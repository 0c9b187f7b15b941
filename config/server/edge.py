"""gunicorn's thread worker, with its main loop waiting for clients instead of its threads.

A thread gets a request when its whole head is here, reads a body that is wholly here, and leaves its answer to be
sent. So silent, half-sent, stalled and slow connections cost a file descriptor each, for a limited time. People,
programs and probes have threads of their own: password hashing never delays intake, and intake never delays a probe.
"""

import errno
import selectors
import socket
import time
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any

from gunicorn import util
from gunicorn.http.errors import NoMoreData
from gunicorn.workers.gthread import ThreadWorker
from prometheus_client import Counter as Metric

from config.server.connection import BodyAwaited, BodyUnreadable, ClientConnection, Waits
from config.server.limits import MOST_HEAD_BYTES, PEOPLE, PROBES, PROGRAMS, EdgeLimits, pool_for
from config.server.refusals import refusal_bytes, refusal_of
from reasoncodes.base.errors import DomainError, HeadersTooLarge, InternalError, RequestTooSlow, TooManyConnections

# Few at a time, so that another process gets its share of a burst.
ACCEPTED_AT_ONCE = 8
MOST_DROPPED_BYTES = 64 * 1024
# Of bodies that have not come and answers that are not taken, in all: many clients could fill the memory otherwise.
MOST_HELD_BYTES = 64 * 1024 * 1024
CONNECTIONS_ENDED = Metric("holdpoint_web_connections_ended_total", "Connections ended by the web server.", ["why"])
# What a client can be told when its time is over. In the other phases it has asked nothing, or has its answer.
TOO_SLOW = {Waits.HEAD: "head", Waits.BODY: "body"}


class EdgeWorker(ThreadWorker):  # type: ignore[misc]
    def init_process(self) -> None:
        self.limits = EdgeLimits.from_environment()
        # We count connections ourselves: gunicorn would stop accepting, and then nobody gets in.
        self.worker_connections = self.max_keepalived = 2**31
        self.waiting: dict[ClientConnection, None] = {}
        self.addresses: Counter[str] = Counter()
        self.seconds = {
            Waits.HEAD: self.limits.head_seconds,
            Waits.BODY: self.limits.body_seconds,
            Waits.NEXT: self.limits.idle_seconds,
            Waits.ANSWER: self.limits.answer_seconds,
            Waits.CLOSE: self.limits.linger_seconds,
        }
        sizes = {PEOPLE: self.limits.console_threads, PROGRAMS: self.cfg.threads, PROBES: 1}
        self.pools = {name: ThreadPoolExecutor(size, thread_name_prefix=name) for name, size in sizes.items()}
        super().init_process()

    def get_thread_pool(self) -> ThreadPoolExecutor:
        return self.pools[PROGRAMS]

    # Accepting ----------------------------------------------------------------------------------------------------

    def accept(self, listener: Any) -> None:
        for _ in range(ACCEPTED_AT_ONCE):
            try:
                raw, client = listener.accept()
            except OSError as error:
                if error.errno in (errno.EAGAIN, errno.ECONNABORTED, errno.EWOULDBLOCK):
                    return
                if error.errno in (errno.EMFILE, errno.ENFILE) and self._give_up_one(list(self.waiting)):
                    continue
                raise
            self._admit(ClientConnection(raw, client, listener.getsockname()))

    def _admit(self, conn: ClientConnection) -> None:
        """When there are too many connections, the one that has kept us waiting longest makes room: whoever sends a
        request at once always gets in. Only if all others are being answered, the new one is refused."""
        self.nr_conns += 1
        counted = self.limits.counted(conn.address)
        if counted:
            self.addresses[conn.address] += 1
            if self.addresses[conn.address] > self.limits.per_address:
                same = [one for one in self.waiting if one.address == conn.address]
                if not self._give_up_one(same):
                    return self._refuse(conn, TooManyConnections(), "refused")
        if self.nr_conns > self.limits.connections and not self._give_up_one(list(self.waiting)):
            return self._refuse(conn, TooManyConnections(), "refused")
        self._wait(conn, Waits.HEAD)
        return self._on_readable(conn)  # most clients send their request with the connection

    def _give_up_one(self, candidates: list[ClientConnection]) -> bool:
        if not candidates:
            return False
        CONNECTIONS_ENDED.labels(why="made_room").inc()
        self._end(min(candidates, key=lambda one: (one.waits, one.since)))
        return True

    def _hold(self, conn: ClientConnection, what: Waits) -> None:
        """Waits for a body or for an answer to be taken, if there is memory for it."""
        self._wait(conn, what)
        holding = [one for one in self.waiting if one.waits in (Waits.BODY, Waits.ANSWER)]
        if sum(one.held for one in holding) > MOST_HELD_BYTES:
            self._give_up_one(holding)

    # Waiting ------------------------------------------------------------------------------------------------------

    def _wait(self, conn: ClientConnection, what: Waits) -> None:
        """Hands a connection to the main loop. Runs in the main loop's thread."""
        conn.waits, conn.since = what, time.monotonic()
        conn.deadline = conn.since + self.seconds[what]
        self.waiting[conn] = None
        if what is Waits.NEXT:
            self.keepalived_conns.append(conn)
        event = selectors.EVENT_WRITE if what is Waits.ANSWER else selectors.EVENT_READ
        self.poller.register(conn.raw, event, partial(self._on_ready, conn))

    def _stop_waiting(self, conn: ClientConnection) -> None:
        if conn in self.waiting:
            del self.waiting[conn]
            if conn.waits is Waits.NEXT:
                self.keepalived_conns.remove(conn)
            self.poller.unregister(conn.raw)

    def _on_ready(self, conn: ClientConnection, _: Any) -> None:
        # One event can end another connection of the same batch.
        if conn not in self.waiting:
            return
        if conn.waits is Waits.CLOSE:
            if conn.drop_received(MOST_DROPPED_BYTES):
                self._end(conn)
        elif conn.waits is Waits.ANSWER:
            self._on_writable(conn)
        elif conn.waits is Waits.BODY:
            self._on_body(conn)
        else:
            self._on_readable(conn)

    def _on_readable(self, conn: ClientConnection) -> None:
        if not conn.receive():
            return self._end(conn)
        if conn.has_head:
            self._stop_waiting(conn)
            return self._answer(conn)
        if conn.received and conn.waits is Waits.NEXT:
            # The time for the head runs from its first byte.
            self._stop_waiting(conn)
            self._wait(conn, Waits.HEAD)
        return None

    def _on_body(self, conn: ClientConnection) -> None:
        whole = conn.receive_body()
        if whole is False:
            self._end(conn)
        elif whole:
            self._stop_waiting(conn)
            self._submit(conn)

    def _on_writable(self, conn: ClientConnection) -> None:
        try:
            if not conn.flush():
                return None
        except OSError:
            return self._end(conn)
        self._stop_waiting(conn)
        return self._sent(conn)

    def murder_pending(self) -> None:
        """Once a second: ends what took too long. Clients that began a request are told so."""
        now = time.monotonic()
        for conn in [one for one in self.waiting if one.deadline <= now]:
            what = TOO_SLOW.get(conn.waits) if conn.received or conn.request else None
            if what is None:
                CONNECTIONS_ENDED.labels(why="answer_not_taken" if conn.waits is Waits.ANSWER else "idle").inc()
                self._end(conn)
            else:
                self._stop_waiting(conn)
                self._refuse(conn, RequestTooSlow(), f"slow_{what}")

    def murder_keepalived(self, force: bool = False) -> None:
        """gunicorn's call at the end of a process; the time of idle connections is looked at with all others."""
        if force:
            for conn in list(self.waiting):
                self._end(conn)

    def set_accept_enabled(self, enabled: bool) -> None:
        super().set_accept_enabled(enabled)
        if not self.alive:
            # A process that ends waits for requests that it answers, not for clients that may never send one.
            for conn in [one for one in self.waiting if one.waits in (Waits.NEXT, Waits.HEAD, Waits.BODY)]:
                self._end(conn)

    # Answering ----------------------------------------------------------------------------------------------------

    def _answer(self, conn: ClientConnection) -> None:
        """A whole head is here, or one that can only be refused."""
        if len(conn.received) > MOST_HEAD_BYTES and conn.received.find(b"\r\n\r\n", 0, MOST_HEAD_BYTES) < 0:
            # The parser says whether the address or the headers are too long; what follows stays unread.
            del conn.received[MOST_HEAD_BYTES:]
            conn.cut = True
        conn.pool = pool_for(bytes(conn.received[:4200]))
        self._submit(conn)

    def _submit(self, conn: ClientConnection) -> None:
        future = self.pools[conn.pool].submit(self.handle, conn)
        future.add_done_callback(lambda done: self.method_queue.defer(self.finish_request, conn, done))

    def handle(self, conn: ClientConnection) -> Waits | None:
        """Runs in a thread. Says what the connection waits for next; None: nothing, it is over."""
        try:
            request = conn.request or conn.parse(self.cfg)
            conn.sock.begin()
            conn.keep = self.handle_request(request, conn)
        except BodyAwaited:
            conn.unsent.clear()
            conn.invite()
            return Waits.BODY
        except BodyUnreadable as refused:
            self._put_refusal(conn, refused.problem)
        except StopIteration:
            conn.keep = False
        except (BrokenPipeError, ConnectionResetError, TimeoutError):
            return None
        except Exception as error:  # what the parser or gunicorn itself refuses
            self.handle_error(None, conn, conn.client, error)
        return self._next_of(conn)

    def _next_of(self, conn: ClientConnection) -> Waits | None:
        try:
            flushed = conn.flush()
        except OSError:
            return None
        if not flushed:
            return Waits.ANSWER
        return Waits.NEXT if conn.keep else Waits.CLOSE

    def handle_error(self, req: Any, client: Any, addr: Any, exc: BaseException) -> None:
        """Answers what the application never saw. gunicorn's version repeats the request, in its answer and its log."""
        problem = refusal_of(exc)
        if problem.status == InternalError.status:
            self.log.exception("request_failed")
        else:
            self.log.warning("request_refused_unread: not a request that the application could answer")
        self._put_refusal(client, HeadersTooLarge() if client.cut and isinstance(exc, NoMoreData) else problem)

    @staticmethod
    def _put_refusal(conn: ClientConnection, problem: DomainError) -> None:
        conn.keep = False
        conn.unsent[:] = refusal_bytes(problem)

    def finish_request(self, conn: ClientConnection, done: "Future[Waits | None]") -> None:
        """Runs in the main loop when a thread is done with a connection."""
        try:
            what = done.result()
        except BaseException:
            self.log.exception("request_failed")
            return self._end(conn)
        if what is None:
            return self._end(conn)
        if what in (Waits.BODY, Waits.ANSWER):
            return self._hold(conn, what)
        return self._sent(conn)

    def _sent(self, conn: ClientConnection) -> None:
        """The answer is out: wait for the next request, or close."""
        if not (conn.keep and self.alive):
            return self._close_gently(conn)
        conn.request_over()
        if conn.has_head:
            return self._answer(conn)  # it was sent together with the last one
        self._wait(conn, Waits.HEAD if conn.received else Waits.NEXT)
        return None

    # Ending -------------------------------------------------------------------------------------------------------

    def _refuse(self, conn: ClientConnection, problem: DomainError, why: str) -> None:
        CONNECTIONS_ENDED.labels(why=why).inc()
        self._put_refusal(conn, problem)
        try:
            conn.flush()  # all or nothing: it is shorter than any send buffer
        except OSError:
            return self._end(conn)
        return self._close_gently(conn)

    def _close_gently(self, conn: ClientConnection) -> None:
        """Closing while the client still sends would be a reset, which can destroy the answer on its way. So our side
        is closed, and what comes is dropped for a short time."""
        # A client whose request is answered sends what it announced and no more. Of others nobody knows.
        expected = conn.missing if conn.request is not None else -1
        if conn.drop_received(MOST_DROPPED_BYTES) or conn.dropped == expected:
            return self._end(conn)
        try:
            conn.raw.shutdown(socket.SHUT_WR)
        except OSError:
            return self._end(conn)
        self._wait(conn, Waits.CLOSE)
        return None

    def _end(self, conn: ClientConnection) -> None:
        self._stop_waiting(conn)
        self.nr_conns -= 1
        if conn.address in self.addresses:
            self.addresses[conn.address] -= 1
            if not self.addresses[conn.address]:
                del self.addresses[conn.address]
        util.close(conn.raw)
