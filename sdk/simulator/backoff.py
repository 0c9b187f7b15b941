"""Waiting times while a server is away: short at first, never longer than ten seconds."""

FIRST, LONGEST = 0.25, 10.0


def module_backoff(tries: int) -> float:
    """Seconds before try number `tries` + 1."""
    return float(min(FIRST * 2 ** min(tries, 10), LONGEST))
