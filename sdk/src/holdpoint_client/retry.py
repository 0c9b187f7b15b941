"""How long to wait before the next try. Pure: clock and dice are handed in."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """`deadline` is for one whole operation with all its tries, in seconds."""

    deadline: float = 60.0
    first: float = 0.25
    longest: float = 15.0
    most_tries: int = 12

    def pause(self, tries: int, asked: float | None, roll: float) -> float:
        """Seconds before try `tries` + 1; `roll` from 0 to 1. Never less than the server asked for, and spread out, so
        that callers who were refused together do not come back together."""
        ceiling = min(self.longest, self.first * 2.0 ** min(tries - 1, 30))
        if asked is None:
            return ceiling * (0.5 + roll / 2)
        return asked + ceiling * roll


NEVER = RetryPolicy(most_tries=1)


def retry_after(headers: Mapping[str, str], *, wall: datetime) -> float | None:
    """Seconds, from a number or an HTTP date. A date counts from the server's own clock where it tells it."""
    text = headers.get("retry-after", "").strip()
    if text.isascii() and text.isdecimal() and len(text) < 10:
        return float(text)
    due = _moment(text)
    if due is None:
        return None
    return max(0.0, (due - (_moment(headers.get("date", "")) or wall)).total_seconds())


def _moment(text: str) -> datetime | None:
    try:
        found = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
