"""Sends mail through Django's backend: one connection for many mails, and what an error means for later ones."""

import smtplib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from django.core.mail import EmailMessage, get_connection
from django.core.mail.message import BadHeaderError

from attempts.notify.rules.delivery import Blame, Delivered, Trouble


@contextmanager
def mail_connection() -> Iterator[Any]:
    """A connection for several mails; None if the mail server cannot be reached."""
    connection = get_connection(fail_silently=False)
    try:
        connection.open()
    except (OSError, smtplib.SMTPException):
        yield None
        return
    try:
        yield connection
    finally:
        # An error while closing changes nothing: the server has already accepted or refused the mails.
        with suppress(OSError, smtplib.SMTPException):
            connection.close()


def mail_send(connection: Any, *, to: str, subject: str, body: str) -> Delivered | Trouble:
    if connection is None:
        return Trouble("no_connection", pauses=True)
    # Tells automatic responders not to answer (RFC 3834).
    headers = {"Auto-Submitted": "auto-generated"}
    try:
        sent = connection.send_messages([EmailMessage(subject=subject, body=body, to=[to], headers=headers)])
    except smtplib.SMTPRecipientsRefused as refusal:
        # Only a permanent refusal (5xx) is held against the address. After a temporary one the mail is tried again.
        codes = [code for code, _ in refusal.recipients.values()]
        forever = bool(codes) and all(500 <= code < 600 for code in codes)
        return Trouble("address_refused", Blame.ADDRESS) if forever else Trouble("address_refused_for_now")
    except (BadHeaderError, ValueError, UnicodeError):
        return Trouble("address_unusable", Blame.ADDRESS)
    except smtplib.SMTPResponseException as refusal:
        return Trouble(f"smtp_{refusal.smtp_code}", pauses=True)
    except (OSError, smtplib.SMTPException):
        return Trouble("no_answer", pauses=True)
    return Delivered() if sent else Trouble("not_sent", pauses=True)
