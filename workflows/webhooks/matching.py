"""Which events an endpoint wants: names, `prefix.*`, or `*`. Pure."""

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from reasoncodes.errors import FieldError
from workflows.events.webhooks import EMIT, TEST, TYPES

MOST_PATTERNS = 50
PATTERN = re.compile(r"\*|[a-z][a-z0-9_-]*(\.[a-z][a-z0-9_-]*)*(\.\*)?")


def matches(patterns: Iterable[str], name: str) -> bool:
    return any(_one(pattern, name) for pattern in patterns)


def _one(pattern: str, name: str) -> bool:
    return pattern in {"*", name} or (pattern.endswith(".*") and name.startswith(pattern[:-1]))


def pattern_problems(patterns: Sequence[str], *, emitted: Iterable[str]) -> list[FieldError]:
    """What would never match anything, with what was perhaps meant. `emitted` are the names that the organization's
    own definitions give to their emit_webhook steps."""
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
