"""Sends one mail about a sign-in through Django's backend."""

import smtplib

from django.core.mail import EmailMessage
from django.core.mail.message import BadHeaderError


def sign_in_mail_send(*, to: str, subject: str, body: str) -> bool:
    """False if the server did not take it; nothing is told about why, because an error's text names the address."""
    # Tells automatic responders not to answer (RFC 3834).
    letter = EmailMessage(subject=subject, body=body, to=[to], headers={"Auto-Submitted": "auto-generated"})
    try:
        return bool(letter.send(fail_silently=False))
    except (OSError, smtplib.SMTPException, BadHeaderError, ValueError, UnicodeError):
        return False
