"""When a step is tried again. Pure and without jitter: replay must compute the same moment."""

from datetime import timedelta

# Factors of the step's delay (S3: 5 s, 30 s, 2 min, 10 min for a delay of five seconds). The last one is also the
# limit.
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
