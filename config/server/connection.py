"""One connection of a client: what it has sent, what it has yet to take, and for whose sake it waits.

A connection belongs either to the main loop, which waits for the client without a thread, or to one thread that
answers. Both read and write without blocking, apart from an answer that is longer than `MOST_UNSENT`.
"""

import contextlib
import select
import socket
import time
from enum import IntEnum
from typing import Any

from gunicorn.http.body import LengthReader
from gunicorn.http.message import Request
from gunicorn.http.unreader import IterUnreader

from config.server.limits import MOST_BODY_BYTES, MOST_HEAD_BYTES
from reasoncodes.base.errors import BodyTooLarge, DomainError, LengthRequired

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
SEND_AT_ONCE = 64 * 1024
MOST_UNSENT = 4 * 1024 * 1024
# A client that takes a long answer more slowly than this is let go; the thread is needed.
SLOWEST_BYTES_PER_SECOND = 16 * 1024
GRACE_SECONDS = 30


class Waits(IntEnum):
    """What the main loop waits for. In this order connections are given up when there are too many."""

    CLOSE = 0
    NEXT = 1
    HEAD = 2
    ANSWER = 3
    BODY = 4


class BodyAwaited(BaseException):
    """The application asks for a body that has not arrived. Not an Exception: nothing in the application may answer it.

    The request is given up before it has done anything, and answered from its beginning when the body is there."""


class BodyUnreadable(BaseException):
    """The application asks for a body that no request may have."""

    def __init__(self, problem: DomainError) -> None:
        self.problem = problem


class ClientConnection:
    """`sock` stands for the socket where gunicorn writes an answer; see `AnswerSocket`."""

    def __init__(self, raw: socket.socket, client: Any, server: Any) -> None:
        raw.setblocking(False)
        self.raw, self.client, self.server = raw, client, server
        self.address = str(client[0]) if isinstance(client, tuple) else ""
        self.sock = AnswerSocket(self)
        self.received = bytearray()
        self.unsent = bytearray()
        self.request: Any = None
        self.waits, self.since, self.deadline = Waits.HEAD, 0.0, 0.0
        self.pool = ""
        self.dropped = 0
        self.keep = True
        self.cut = False

    def receive(self) -> bool:
        """Takes what is there, within the limits. False: the client has closed its side or is gone."""
        try:
            data = self.raw.recv(MOST_HEAD_BYTES)
        except BlockingIOError:
            return True
        except OSError:
            return False
        self.received += data
        return bool(data)

    @property
    def has_head(self) -> bool:
        """Whether there is a whole head, or one that can only be refused: too long, or with lines that never end."""
        sent = self.received
        if sent.find(b"\r\n\r\n") >= 0 or len(sent) > MOST_HEAD_BYTES:
            return True
        return sent.count(b"\n") != sent.count(b"\r\n")

    def parse(self, cfg: Any) -> Any:
        """The request, of bytes that are already here: the parser can never wait for the client."""
        unreader = IterUnreader([bytes(self.received)])
        self.received.clear()
        self.request = Request(cfg, unreader, self.client)
        # gunicorn would invite the client to send its body before the application has looked at the request.
        self.request._expected_100_continue = False
        return self.request

    @property
    def missing(self) -> int:
        """How much of the announced body has not arrived."""
        reader = self.request.body.reader
        if not isinstance(reader, LengthReader):
            return 0
        return max(0, reader.length - len(reader.unreader.buf.getvalue()))

    def body_wanted(self) -> None:
        """Called when the application first reads the body. Nobody reads a body that is not wholly here: with a thread
        waiting for each stalled upload, a few of them would stop everybody."""
        reader = self.request.body.reader
        if not isinstance(reader, LengthReader):
            raise BodyUnreadable(LengthRequired())
        if reader.length > MOST_BODY_BYTES:
            raise BodyUnreadable(BodyTooLarge())
        if self.missing and not self._fetch_body():
            raise BodyAwaited

    def _fetch_body(self) -> bool:
        """Whether the rest of the body is here by now. Moves what came to where gunicorn's reader looks."""
        while self.missing:
            if not self.receive() or not self.received:
                break
            self._hand_over()
        return not self.missing

    def _hand_over(self) -> None:
        buffer = self.request.body.reader.unreader.buf
        buffer.seek(0, 2)
        buffer.write(self.received)
        self.received.clear()

    def receive_body(self) -> bool | None:
        """True when the body is whole, None while it is not, False when the client is gone."""
        if not self.receive():
            return False
        self._hand_over()
        return None if self.missing else True

    def invite(self) -> None:
        """Says `100 Continue` to a client that waits for it before it sends its body."""
        expected = dict(self.request.headers).get("EXPECT", "").lower() == "100-continue"
        if expected:
            with contextlib.suppress(OSError):
                self.raw.send(CONTINUE)

    @property
    def held(self) -> int:
        """Bytes in memory for this client, at most: of its body and of its answer."""
        return len(self.unsent) + (self.request.body.reader.length if self.waits is Waits.BODY else 0)

    def request_over(self) -> None:
        """What the client sent after the request belongs to its next one; what the application left of the body does
        not, or a second request could be hidden in it."""
        reader = self.request.body.reader
        if isinstance(reader, LengthReader):
            reader.unreader.read(reader.length)
        self.received += self.request.unreader.take_buffered()
        self.request = None

    def flush(self) -> bool:
        """Sends what the client takes now; whether all is sent. Raises OSError if it is gone."""
        while self.unsent:
            try:
                sent = self.raw.send(self.unsent)
            except BlockingIOError:
                return False
            del self.unsent[:sent]
        return True

    def drop_received(self, most: int) -> bool:
        """Reads and forgets what the client still sends. True when it has closed its side, or sends too much."""
        try:
            while True:
                count = len(self.raw.recv(8192))
                self.dropped += count
                if not count or self.dropped > most:
                    return True
        except BlockingIOError:
            return False
        except OSError:
            return True

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.raw.close()


class AnswerSocket:
    """What gunicorn takes for the socket when it writes an answer. It collects the answer, so that a client that takes
    it slowly occupies no thread; only what is longer than `MOST_UNSENT` waits for the client here."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self._began = 0.0
        self._sent = 0

    def begin(self) -> None:
        self._began, self._sent = 0.0, 0

    def sendall(self, data: bytes) -> None:
        unsent = self.connection.unsent
        unsent += data
        if len(unsent) >= SEND_AT_ONCE and not self.connection.flush():
            while len(unsent) > MOST_UNSENT:
                self._wait_for_client(len(unsent))

    def _wait_for_client(self, before: int) -> None:
        from_now = time.monotonic()
        self._began = self._began or from_now
        if from_now - self._began > GRACE_SECONDS + self._sent / SLOWEST_BYTES_PER_SECOND:
            raise TimeoutError
        select.select([], [self.connection.raw], [], 1.0)
        self.connection.flush()
        self._sent += before - len(self.connection.unsent)

    def body_wanted(self) -> None:
        self.connection.body_wanted()

    def shutdown(self, how: int) -> None:
        """gunicorn's graceful close is not used: the main loop closes connections."""
        raise OSError

    def close(self) -> None:
        """See `shutdown`."""
