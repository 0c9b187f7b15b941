"""Sends a mail that names the references, through Django's backend. Its effect is `once`: mail is not deduplicated."""

import smtplib
import socket
import threading
from contextlib import suppress

from django.core.mail import EmailMessage, get_connection

from attempts.execution.adapters.base import AdapterCall, Outcome, failure, success, unknown
from attempts.execution.configured import email_target


class EmailAdapter:
    name = "email"
    effect = "once"
    retryable: tuple[str, ...] = ()

    def receiver(self, route: str) -> str:
        return "mail server"

    def call(self, call: AdapterCall) -> Outcome:
        recipient = email_target(call.route)
        if not recipient:
            return failure("target_not_configured")
        connection = get_connection(fail_silently=False)
        # Otherwise a mail server that accepts connections and says nothing would have the place for ever.
        if hasattr(connection, "timeout"):
            connection.timeout = min(connection.timeout or call.seconds, call.seconds)
        # Opened separately: an error here proves that nothing was sent, an error while sending does not.
        try:
            connection.open()
        except (OSError, smtplib.SMTPException):
            return failure("no_connection")
        cut = threading.Timer(call.seconds, _cut, [connection])
        cut.daemon = True
        cut.start()
        try:
            sent = connection.send_messages([message(call, recipient)])
        except smtplib.SMTPRecipientsRefused:
            return failure("refused")
        except smtplib.SMTPResponseException as error:
            return failure("refused", status=error.smtp_code)
        except (OSError, smtplib.SMTPException):
            return unknown("connection")
        finally:
            cut.cancel()
            _connection_close(connection)
        return success(messages=sent) if sent else failure("not_sent")


def _cut(connection: object) -> None:
    """The call's whole time is over: `timeout` counts for each answer of the server, however many there are."""
    open_socket = getattr(getattr(connection, "connection", None), "sock", None)
    if open_socket is not None:
        with suppress(OSError):
            open_socket.shutdown(socket.SHUT_RDWR)


def _connection_close(connection: object) -> None:
    """Closes the connection. An error is ignored: the server has already accepted or refused the mail."""
    try:
        connection.close()  # type: ignore[attr-defined]
    except (OSError, smtplib.SMTPException):
        return


def message(call: AdapterCall, recipient: str) -> EmailMessage:
    lines = [f"{name}: {value}" for name, value in call.document().items() if name != "metadata" and value]
    return EmailMessage(
        # A line break in a subject would be a header injection; Django raises on it.
        subject=f"{call.operation}: {call.target_ref}".replace("\n", " ")[:200],
        body="\n".join(lines) + "\n",
        to=[recipient],
        headers={"X-Holdpoint-Attempt": str(call.attempt_id), "X-Holdpoint-Effect-Key": call.effect_key},
    )
