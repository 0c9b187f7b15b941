"""What happens to a request body that nobody read: nothing. The answer goes out, the connection closes.

gunicorn says `100 Continue` before the application has looked at the request and drains what was left unread
afterwards. Both would let a caller without permission push bytes through a closed door, or hold a thread with
a stalled upload. Here `100 Continue` is sent only when the application first reads, and an unread body makes
the connection close instead of being drained.
"""

from collections.abc import Callable, Iterable
from typing import Any

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class GuardedInput:
    """The body stream, knowing whether it was touched, and asking the client for it only then."""

    def __init__(self, stream: Any, *, ask: Callable[[], None] | None) -> None:
        self._stream = stream
        self._ask = ask
        self.touched = False

    def _touch(self) -> None:
        if not self.touched:
            self.touched = True
            if self._ask is not None:
                self._ask()

    def read(self, *args: Any) -> bytes:
        self._touch()
        return bytes(self._stream.read(*args))

    def readline(self, *args: Any) -> bytes:
        self._touch()
        return bytes(self._stream.readline(*args))

    def readlines(self, *args: Any) -> list[bytes]:
        self._touch()
        return list(self._stream.readlines(*args))

    def __iter__(self) -> Any:
        self._touch()
        return iter(self._stream)


def _has_body(environ: dict[str, Any]) -> bool:
    """Whether the request announced a body."""
    length = environ.get("CONTENT_LENGTH") or "0"
    return length.strip() != "0" or "chunked" in environ.get("HTTP_TRANSFER_ENCODING", "").lower()


class UnreadBodyGuard:
    """WSGI wrapper; see the module's docstring."""

    def __init__(self, application: Callable[..., Iterable[bytes]]) -> None:
        self.application = application

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if not _has_body(environ):
            return self.application(environ, start_response)
        guarded = GuardedInput(environ["wsgi.input"], ask=self._ask(environ))
        environ["wsgi.input"] = guarded
        response = self.application(environ, start_response)
        if not guarded.touched:
            # gunicorn hands over a bound method of its response object; other servers have no such switch.
            force_close = getattr(getattr(start_response, "__self__", None), "force_close", None)
            if force_close is not None:
                force_close()
        return response

    @staticmethod
    def _ask(environ: dict[str, Any]) -> Callable[[], None] | None:
        sock = environ.get("gunicorn.socket")
        if sock is None or environ.get("HTTP_EXPECT", "").lower() != "100-continue":
            return None
        return lambda: sock.sendall(CONTINUE)
