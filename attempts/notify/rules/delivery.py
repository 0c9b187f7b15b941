"""How a delivery ended, when to try again, and Slack's signature. Pure."""

import hmac
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from hashlib import sha256

# The wait doubles from 15 seconds to an hour: about four hours in all, then the message counts as failed.
MOST_TRIES = 12
FIRST_WAIT, LONGEST_WAIT = 15, 3600


class Blame(StrEnum):
    """What is at fault when a delivery fails. It decides what is stopped."""

    NOBODY = ""  # temporary: tried again
    MESSAGE = "message"  # this message can never be delivered
    ADDRESS = "address"  # the person's address is refused
    ROUTE = "route"  # nothing can be delivered to this channel
    WORKSPACE = "workspace"  # nothing can be delivered to this workspace


@dataclass(frozen=True, slots=True)
class Delivered:
    message_ref: str = ""


@dataclass(frozen=True, slots=True)
class Trouble:
    """A failed delivery. `why` is our own word or the chat's error code, never its text. `after`: seconds that the
    receiver asked us to wait. `pauses`: other messages to this receiver wait too."""

    why: str
    blame: Blame = Blame.NOBODY
    after: float | None = None
    pauses: bool = False


def wait_before(*, tries: int, after: float | None = None) -> timedelta:
    """The wait after this many tries."""
    # At least what the receiver asks for, but at most a day: a wrong `Retry-After` must not stop a message for ever.
    own = min(FIRST_WAIT * 2 ** max(0, tries - 1), LONGEST_WAIT)
    return timedelta(seconds=min(max(own, after or 0), 86_400))


# Slack's own rule: older callbacks are refused, so that one that was recorded cannot be sent again later.
SKEW_SECONDS = 300


def slack_signature(*, secret: str, timestamp: str, body: bytes) -> bytes:
    text = b"v0:" + timestamp.encode() + b":" + body
    return b"v0=" + hmac.new(secret.encode(), text, sha256).hexdigest().encode()


def slack_signature_fits(*, secret: str, timestamp: str, signature: str, body: bytes, now: float) -> bool:
    """Whether the signature is right and not too old."""
    # The header is the sender's, so it is checked before `int` reads it.
    if not (timestamp.isascii() and timestamp.isdecimal() and len(timestamp) <= 12):
        return False
    expected = slack_signature(secret=secret, timestamp=timestamp, body=body)
    # In constant time, so that a signature cannot be guessed byte by byte. As bytes, because `compare_digest` raises on
    # text that is not ASCII.
    fits = hmac.compare_digest(expected, signature.encode("utf-8", "surrogatepass"))
    return fits and abs(now - int(timestamp)) <= SKEW_SECONDS
