"""When a step is tried again. Pure, and the same for the same attempt."""

from datetime import timedelta

# S3's ladder for a delay of five seconds; other delays scale it.
EXPONENTIAL = (1, 6, 24, 120)


def step_backoff(*, kind: str, delay_seconds: int, retry: int) -> timedelta:
    """`retry` is 1 for the first one."""
    if kind == "fixed":
        factor = 1
    elif kind == "linear":
        factor = retry
    else:
        factor = EXPONENTIAL[min(retry, len(EXPONENTIAL)) - 1]
    return timedelta(seconds=delay_seconds * factor)
