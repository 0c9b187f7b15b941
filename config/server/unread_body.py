"""Leaves a request body unread if the application does not read it. The answer is sent, and the connection closes.

gunicorn sends `100 Continue` before the application has looked at the request, and drains an unread body afterwards.
Both would let a caller without permission send bytes to a closed contract, or block a thread with a stalled upload.
Here `100 Continue` is sent at the application's first read, and an unread body closes the connection.
"""

from collections.abc import Callable, Iterable
from typing import Any

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class GuardedInput:
    """The body stream. It knows whether it was read, and asks the client for the body only then."""

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
    """Whether the request announces a body."""
    length = environ.get("CONTENT_LENGTH") or "0"
    return length.strip() != "0" or "chunked" in environ.get("HTTP_TRANSFER_ENCODING", "").lower()


class UnreadBodyGuard:
    """WSGI wrapper; see the docstring of the module."""

    def __init__(self, application: Callable[..., Iterable[bytes]]) -> None:
        self.application = application

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if not _has_body(environ):
            return self.application(environ, start_response)
        guarded = GuardedInput(environ["wsgi.input"], ask=self._ask(environ))
        environ["wsgi.input"] = guarded
        response = self.application(environ, start_response)
        if not guarded.touched:
            # gunicorn passes a bound method of its response object; other servers have no such switch.
            force_close = getattr(getattr(start_response, "__self__", None), "force_close", None)
            if force_close is not None:
                force_close()
        return response

    @staticmethod
    def _ask(environ: dict[str, Any]) -> Callable[[], None] | None:
        """Sends `100 Continue` if the client waits for it."""
        sock = environ.get("gunicorn.socket")
        if sock is None or environ.get("HTTP_EXPECT", "").lower() != "100-continue":
            return None
        return lambda: sock.sendall(CONTINUE)
