"""Leaves a request body unread if the application does not read it. The answer is sent, and the connection closes.

The server is asked for the body at the application's first read (config.server.connection.body_wanted); only then does
it say `100 Continue` and wait for the bytes, and an unread body closes the connection. Otherwise a caller without
permission could send bytes to a closed contract.
"""

from collections.abc import Callable, Iterable
from typing import Any


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
        """How to ask our own server for the body; another server has it read from its socket."""
        return getattr(environ.get("gunicorn.socket"), "body_wanted", None)
