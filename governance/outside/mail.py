"""Django's mail backend with a limit for each whole step (connect and greet, one mail, goodbye). smtplib limits single
reads: a server that says a word now and then, or a name that hangs, would keep a worker for as long as it likes."""

import smtplib
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from threading import Timer
from typing import Any

from django.core.mail import EmailMessage
from django.core.mail.backends.smtp import EmailBackend

from governance.outside.names import addresses_of

Wired = Callable[[socket.socket], None]
USUAL_SECONDS = 20.0


class _Smtp(smtplib.SMTP):
    def __init__(self, *args: Any, left: Callable[[], float], wired: Wired, **more: Any) -> None:
        self._left, self._wired = left, wired
        super().__init__(*args, **more)

    def _get_socket(self, host: str, port: int, timeout: float) -> Any:
        (address, *_) = addresses_of(host, port, seconds=self._left())
        found = socket.create_connection((address, port), self._left(), self.source_address)
        self._wired(found)
        return found


class _SmtpOverTls(smtplib.SMTP_SSL, _Smtp):
    """Its parent wraps the socket that `_Smtp` makes."""


class TimedEmailBackend(EmailBackend):
    """`ends_at` (monotonic): when the whole use of this connection must be over, if the caller says so."""

    ends_at: float | None = None
    _step_ends_at = 0.0
    _wire: socket.socket | None = None

    @property
    def connection_class(self) -> Any:
        return partial(_SmtpOverTls if self.use_ssl else _Smtp, left=self._left, wired=self._keep)

    def open(self) -> Any:
        try:
            with self._limited():
                return super().open()
        except BaseException:
            self._forget()
            raise

    def close(self) -> None:
        try:
            with self._limited():
                super().close()
        finally:
            self._forget()

    def send_messages(self, email_messages: Sequence[EmailMessage]) -> int:
        # Opened here and not by the parent, so that connecting has its own limit.
        opened = self.open()
        try:
            return int(super().send_messages(email_messages))
        finally:
            if opened:
                self.close()

    def _send(self, email_message: EmailMessage) -> Any:
        with self._limited():
            return super()._send(email_message)  # type: ignore[misc]

    @contextmanager
    def _limited(self) -> Iterator[None]:
        ends_at = time.monotonic() + (self.timeout or USUAL_SECONDS)
        self._step_ends_at = ends_at if self.ends_at is None else min(ends_at, self.ends_at)
        timer = Timer(self._left(), self._cut)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _left(self) -> float:
        left = self._step_ends_at - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left

    def _keep(self, connected: socket.socket) -> None:
        # A second handle: TLS takes the first one over, and only its own thread may use that.
        self._wire = connected.dup()

    def _forget(self) -> None:
        if self._wire is not None:
            self._wire.close()
            self._wire = None

    def _cut(self) -> None:
        """Ends the connection under whoever reads or writes, who then gets an error."""
        with suppress(OSError):
            if self._wire is not None:
                self._wire.shutdown(socket.SHUT_RDWR)
