"""Which events an endpoint wants (names, `prefix.*`, or `*`), and when a delivery is tried again. Pure."""

import re
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from difflib import get_close_matches
from hashlib import sha256
from uuid import UUID

from reasoncodes.base.errors import FieldError
from workflows.webhooks.rules.events import EMIT, TEST, TYPES

MOST_PATTERNS = 50
PATTERN = re.compile(r"\*|[a-z][a-z0-9_-]*(\.[a-z][a-z0-9_-]*)*(\.\*)?")


def matches(patterns: Iterable[str], name: str) -> bool:
    return any(_one(pattern, name) for pattern in patterns)


def _one(pattern: str, name: str) -> bool:
    return pattern in {"*", name} or (pattern.endswith(".*") and name.startswith(pattern[:-1]))


def pattern_problems(patterns: Sequence[str], *, emitted: Iterable[str]) -> list[FieldError]:
    """Patterns that would never match anything, each with a suggestion. `emitted`: the event names of the
    organization's own emit_webhook steps."""
    names = {*TYPES, *emitted} - {EMIT, TEST}
    found = []
    for place, pattern in enumerate(patterns):
        if PATTERN.fullmatch(pattern) and (pattern == "*" or any(_one(pattern, name) for name in names)):
            continue
        near = get_close_matches(pattern, names, n=1)
        found.append(
            FieldError(
                f"/events/{place}",
                "matches no event: a name of GET /api/v1/event-types?webhook=true or of a definition's webhook step, "
                "such a name's beginning with .*, or *",
                rule="unknown_event_type",
                suggestion=near[0] if near else "",
            )
        )
    if not patterns or len(patterns) > MOST_PATTERNS:
        found.append(FieldError("/events", f"must have between 1 and {MOST_PATTERNS} entries"))
    return found


# Seconds after each failed try: 75 and a half hours altogether, a little longer than FAILING.
DELAYS: tuple[int, ...] = (5, 60, 300, 1800, 7200, 18000, 36000, 50400, 72000, 86400)
JITTER = 0.1  # only later, never earlier: all tries together must last longer than FAILING
# After this many failures of an event, later events of the same subject no longer wait for it.
PATIENCE = 4
FAILING = timedelta(days=3)
"""An endpoint that has given no good answer for so long is disabled."""
# Seconds. The second one limits what a receiver may ask for: it must not be able to stop deliveries for days.
LONGEST_HOLD = 300.0
LONGEST_RETRY_AFTER = 3600.0


def next_try(*, delivery_id: UUID, failures: int, at: datetime) -> datetime | None:
    """The next try after this many failures; None: the delivery has failed."""
    if failures > len(DELAYS):
        return None
    seconds = DELAYS[failures - 1]
    return at + timedelta(seconds=seconds * (1 + JITTER * _spread(delivery_id, failures)))


def hold(*, failures: int, at: datetime, retry_after: float | None) -> datetime:
    """Until when nothing more is sent to an endpoint that just failed."""
    own = min(2.0 ** min(failures, 16), LONGEST_HOLD)
    return at + timedelta(seconds=max(own, min(retry_after or 0.0, LONGEST_RETRY_AFTER)))


def _spread(delivery_id: UUID, failures: int) -> float:
    """Between 0 and 1, the same for the same try. Spreads deliveries that failed together, so that they do not all
    return at once."""
    digest = sha256(delivery_id.bytes + failures.to_bytes(2)).digest()
    return int.from_bytes(digest[:4]) / 0xFFFFFFFF
