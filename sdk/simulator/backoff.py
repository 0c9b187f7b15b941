"""Pauses between tries while a server is away: they double, up to ten seconds."""

# At most ten seconds, so that a server that comes back is noticed soon.
FIRST, LONGEST = 0.25, 10.0


def module_backoff(tries: int) -> float:
    """Seconds before try number `tries` + 1."""
    return float(min(FIRST * 2 ** min(tries, 10), LONGEST))
