"""Settings about people: whose second factor is required, how long one-time links and keys last, whether mail reaches
people."""

from datetime import timedelta

from django.conf import settings


def api_key_life() -> timedelta:
    """How long a key is valid if nobody says otherwise."""
    return timedelta(days=settings.API_KEY_DAYS)


def second_factor_roles() -> frozenset[str]:
    """The kinds of roles that need a second factor in every organization of this installation."""
    return frozenset(settings.SECOND_FACTOR_ROLES)


def invitation_lifetime() -> timedelta:
    return timedelta(hours=settings.INVITATION_HOURS)


def password_reset_lifetime() -> timedelta:
    return timedelta(minutes=settings.PASSWORD_RESET_MINUTES)


def site_url() -> str:
    """The address at which people reach this installation; empty if it is not set."""
    return str(settings.PUBLIC_URL).rstrip("/")


def mail_reaches_people() -> bool:
    """Without a mail server or without our own address no link can be mailed: it is shown instead."""
    return bool(settings.MAIL_REACHES_PEOPLE and site_url())
