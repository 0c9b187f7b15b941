"""When a failed delivery is tried again: eleven tries over about three days. Pure; the jitter comes from the id."""

from datetime import datetime, timedelta
from hashlib import sha256
from uuid import UUID

# After the first try, the second, and so on: 75 hours and a half altogether.
DELAYS: tuple[int, ...] = (5, 60, 300, 1800, 7200, 18000, 36000, 50400, 72000, 86400)
JITTER = 0.1  # later, never sooner: what is given up was tried for more than FAILING
# After so many failures of an earlier event of the same subject, later ones no longer wait for it.
PATIENCE = 4
FAILING = timedelta(days=3)
"""An endpoint that has given no good answer for so long is disabled."""
LONGEST_HOLD = 300.0
LONGEST_RETRY_AFTER = 3600.0


def next_try(*, delivery_id: UUID, failures: int, at: datetime) -> datetime | None:
    """After this many failures; None: it is given up."""
    if failures > len(DELAYS):
        return None
    seconds = DELAYS[failures - 1]
    return at + timedelta(seconds=seconds * (1 + JITTER * _spread(delivery_id, failures)))


def hold(*, failures: int, at: datetime, retry_after: float | None) -> datetime:
    """Until when nothing is sent to an endpoint that just failed: one try at a time finds out whether it is back."""
    own = min(2.0 ** min(failures, 16), LONGEST_HOLD)
    return at + timedelta(seconds=max(own, min(retry_after or 0.0, LONGEST_RETRY_AFTER)))


def _spread(delivery_id: UUID, failures: int) -> float:
    """Between 0 and 1, the same for the same try: what failed together does not come back together."""
    digest = sha256(delivery_id.bytes + failures.to_bytes(2)).digest()
    return int.from_bytes(digest[:4]) / 0xFFFFFFFF
