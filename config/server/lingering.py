"""gunicorn's thread worker, with the wait after a closed connection moved out of its main loop, and with refusals of
our own.

After its last answer gunicorn half-closes a connection and waits up to two seconds for the client to do the same, so
that a reset does not destroy the answer. It waits in the worker's main loop: one client with a stalled upload would
delay everybody else's requests for that time. Here one thread waits for all such connections at once. If the client has
sent everything that it announced, nobody has to wait.
"""

import contextlib
import selectors
import socket
import threading
import time
from queue import Empty, SimpleQueue
from typing import Any

from gunicorn import util
from gunicorn.http.body import LengthReader
from gunicorn.workers.gthread import ThreadWorker

from config.server.refusals import refusal_bytes, refusal_of
from reasoncodes.base.errors import InternalError

# Limits per connection and in total: without them a client could keep sockets and a thread busy without ever asking for
# anything.
SECONDS = 2.0
MOST_BYTES = 64 * 1024
MOST_CONNECTIONS = 512


class Lingering:
    """Half-closed connections, each until its client closes it, sends too much, or its time is over."""

    def __init__(self) -> None:
        self._new: SimpleQueue[socket.socket] = SimpleQueue()
        self._wake, self._bell = socket.socketpair()
        self._waiting: dict[socket.socket, tuple[float, int]] = {}
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._wake, selectors.EVENT_READ)
        threading.Thread(target=self._run, name="lingering", daemon=True).start()

    def take(self, sock: socket.socket) -> None:
        """Closes our side of the connection; returns at once."""
        try:
            sock.setblocking(False)
            sock.shutdown(socket.SHUT_WR)
        except OSError:
            util.close(sock)
            return
        # Under attack an answer may be lost to a reset; running out of file descriptors would stop everybody.
        if len(self._waiting) >= MOST_CONNECTIONS:
            util.close(sock)
            return
        self._new.put(sock)
        with contextlib.suppress(OSError):
            self._bell.send(b"!")

    def _run(self) -> None:
        while True:
            # With nothing to wait for, sleep until a new connection arrives.
            for key, _ in self._selector.select(timeout=0.5 if self._waiting else None):
                if key.fileobj is self._wake:
                    self._wake.recv(4096)
                    self._admit()
                else:
                    self._drain(key.fileobj)
            now = time.monotonic()
            for sock in [sock for sock, (deadline, _) in self._waiting.items() if deadline <= now]:
                self._end(sock)

    def _admit(self) -> None:
        with contextlib.suppress(Empty):
            while True:
                sock = self._new.get_nowait()
                self._waiting[sock] = (time.monotonic() + SECONDS, 0)
                self._selector.register(sock, selectors.EVENT_READ)

    def _drain(self, sock: Any) -> None:
        """Reads and drops what the client still sends."""
        deadline, drained = self._waiting[sock]
        try:
            received = len(sock.recv(4096))
        except BlockingIOError:
            return
        except OSError:
            received = 0
        if received == 0 or drained + received > MOST_BYTES:
            self._end(sock)
        else:
            self._waiting[sock] = (deadline, drained + received)

    def _end(self, sock: socket.socket) -> None:
        self._selector.unregister(sock)
        del self._waiting[sock]
        util.close(sock)


class LingeringWorker(ThreadWorker):  # type: ignore[misc]
    def init_process(self) -> None:
        self.lingering = Lingering()  # after the fork, because threads do not survive it
        super().init_process()

    def handle(self, conn: Any) -> Any:
        """Runs in a thread of the pool. A finished connection is closed here, without the main loop."""
        if not conn.initialized and not conn.data_ready:
            conn.data_ready = _has_data(conn.sock)  # gunicorn would create a selector for this question
        keep = super().handle(conn)
        if keep is False and _all_received(conn):
            util.close(conn.sock)
        return keep

    def handle_error(self, req: Any, client: Any, addr: Any, exc: BaseException) -> None:
        """Answers what the application never saw. gunicorn's version repeats the request, in its answer and its log."""
        problem = refusal_of(exc)
        if problem.status == InternalError.status:
            self.log.exception("request_failed")
        else:
            self.log.warning("request_refused_unread: not a request that the application could answer")
        with contextlib.suppress(OSError):
            util.write_nonblock(client, refusal_bytes(problem))

    def finish_request(self, conn: Any, fs: Any) -> None:
        """Called in the main loop when a request is done. A graceful close is done by the other thread."""
        conn.close = lambda graceful=False: self._close(conn.sock, graceful=graceful)
        super().finish_request(conn, fs)

    def _close(self, sock: socket.socket, *, graceful: bool) -> None:
        if graceful and sock.fileno() >= 0:
            self.lingering.take(sock)
        else:
            util.close(sock)


def _has_data(sock: Any) -> bool:
    """Whether something can be read now, which is also true for a closed connection. Reads nothing."""
    try:
        sock.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except (OSError, ValueError):  # nothing yet; or TLS, where peeking is not possible
        return False
    return True


def _all_received(conn: Any) -> bool:
    """Whether the client has sent its whole last request and nothing more, so that closing causes no reset."""
    reader = getattr(getattr(getattr(conn.parser, "mesg", None), "body", None), "reader", None)
    if not isinstance(reader, LengthReader):
        return False
    # What has arrived of an unread body is dropped: the answer is already sent.
    missing = reader.length - len(reader.unreader.buf.getvalue())
    try:
        while 0 < missing <= MOST_BYTES:
            received = len(conn.sock.recv(missing, socket.MSG_DONTWAIT))
            if received == 0:
                return True
            missing -= received
    except (OSError, ValueError):
        return False
    return missing <= 0 and not _has_data(conn.sock)
