"""How a delivery ended, and when to try again. Pure."""

import hmac
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from hashlib import sha256

MOST_TRIES = 12
FIRST_WAIT, LONGEST_WAIT = 15, 3600


class Blame(StrEnum):
    """Whose fault a refusal is: that decides what stops."""

    NOBODY = ""  # a passing trouble: tried again
    MESSAGE = "message"  # this one will never go through
    ADDRESS = "address"  # this person's address is refused
    ROUTE = "route"  # nothing for this channel goes through
    WORKSPACE = "workspace"  # nothing for this workspace goes through


@dataclass(frozen=True, slots=True)
class Delivered:
    message_ref: str = ""


@dataclass(frozen=True, slots=True)
class Trouble:
    """`why` is a word of ours or the chat's error code, never its text. `pauses`: the others to this receiver wait."""

    why: str
    blame: Blame = Blame.NOBODY
    after: float | None = None
    pauses: bool = False


def wait_before(*, tries: int, after: float | None = None) -> timedelta:
    """After so many tries. What the receiver asks for counts, and is not believed beyond a day."""
    own = min(FIRST_WAIT * 2 ** max(0, tries - 1), LONGEST_WAIT)
    return timedelta(seconds=min(max(own, after or 0), 86_400))


SKEW_SECONDS = 300


def slack_signature(*, secret: str, timestamp: str, body: bytes) -> bytes:
    text = b"v0:" + timestamp.encode() + b":" + body
    return b"v0=" + hmac.new(secret.encode(), text, sha256).hexdigest().encode()


def slack_signature_fits(*, secret: str, timestamp: str, signature: str, body: bytes, now: float) -> bool:
    """Compared as bytes: `compare_digest` raises on text that is not ASCII, and headers are the sender's."""
    if not (timestamp.isascii() and timestamp.isdecimal() and len(timestamp) <= 12):
        return False
    expected = slack_signature(secret=secret, timestamp=timestamp, body=body)
    fits = hmac.compare_digest(expected, signature.encode("utf-8", "surrogatepass"))
    return fits and abs(now - int(timestamp)) <= SKEW_SECONDS
