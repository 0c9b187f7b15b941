"""Sends a mail that names the references, through Django's backend. Its effect is `once`: mail is not deduplicated."""

import smtplib
import time
from typing import Any

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
        connection: Any = get_connection(fail_silently=False, timeout=call.seconds)
        # One limit for connecting, sending and the goodbye together.
        connection.ends_at = time.monotonic() + call.seconds
        # Opened separately: an error here proves that nothing was sent, an error while sending does not.
        try:
            connection.open()
        except (OSError, smtplib.SMTPException):
            return failure("no_connection")
        try:
            sent = connection.send_messages([message(call, recipient)])
        except smtplib.SMTPRecipientsRefused:
            return failure("refused")
        except smtplib.SMTPResponseException as error:
            return failure("refused", status=error.smtp_code)
        except (OSError, smtplib.SMTPException):
            return unknown("connection")
        finally:
            _connection_close(connection)
        return success(messages=sent) if sent else failure("not_sent")


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
