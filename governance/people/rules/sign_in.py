"""Signing in, without a database: which kinds of roles there are, one-time tokens, and the words of our mails."""

from datetime import datetime
from hashlib import sha256
from secrets import token_urlsafe

ADMINISTRATOR = "administrator"
# What a role is called before its colon: `reviewer:finance` is a reviewer.
ROLE_KINDS: dict[str, str] = {
    ADMINISTRATOR: "Administrators of the installation",
    "operator": "Operators",
    "reviewer": "Reviewers of every tier",
    "owner": "Owners of readiness areas",
    "auditor": "Auditors",
}
# Who decides or operates. An auditor only reads.
DECIDING = (ADMINISTRATOR, "operator", "reviewer", "owner")
# An organization cannot speak for the administrators of the installation.
KINDS_OF_AN_ORGANIZATION = tuple(kind for kind in ROLE_KINDS if kind != ADMINISTRATOR)


def role_kind(role: str) -> str:
    return role.partition(":")[0]


def token_generate() -> str:
    return token_urlsafe(32)


def token_hash(token: str) -> bytes:
    """As it is stored. No slow hash: 32 random bytes cannot be guessed."""
    return sha256(token.encode(errors="surrogatepass")).digest()


def invitation_letter(*, username: str, link: str, until: datetime) -> tuple[str, str]:
    """(subject, text)."""
    return "Your account at Holdpoint", (
        f"An account was made for you at Holdpoint. Your username is {username}.\n\n"
        f"Open this page and choose how you sign in:\n{link}\n\n"
        f"The link works once, until {until:%d %B %Y, %H:%M} UTC. Give it to nobody: whoever uses it becomes you.\n"
        "If it says that it was used already and it was not you, tell an operator at once.\n"
        "If you did not expect this mail, do nothing.\n"
    )


def password_reset_letter(*, username: str, link: str, until: datetime) -> tuple[str, str]:
    """(subject, text)."""
    return "A new password for Holdpoint", (
        f"Somebody asked for a new password for {username} at Holdpoint.\n\n"
        f"If it was you, choose it here:\n{link}\n\n"
        f"The link works once, until {until:%d %B %Y, %H:%M} UTC. The new password signs you out everywhere.\n"
        "If it was not you, do nothing: your password stays as it is.\n"
    )
