"""Time that counts. While Holdpoint itself could not act, no deadline of others runs: each is later by that much."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

# A heartbeat comes every 5 s. Three that are missing are no busy moment any more.
SILENCE = timedelta(seconds=20)
# No deadline is moved by more: what was asked a day earlier than planned must be asked again.
MOST = timedelta(days=1)


@dataclass(frozen=True, slots=True, order=True)
class Outage:
    """Holdpoint could not act from `began` until `ended`."""

    began: datetime
    ended: datetime


def merged(outages: Iterable[Outage]) -> list[Outage]:
    """In their order, without overlaps. What ends before it begins is left out."""
    found: list[Outage] = []
    for one in sorted(one for one in outages if one.began < one.ended):
        if found and one.began <= found[-1].ended:
            found[-1] = Outage(found[-1].began, max(found[-1].ended, one.ended))
        else:
            found.append(one)
    return found


def fair_deadline(
    deadline: datetime, *, began: datetime, outages: Iterable[Outage], most: timedelta = MOST
) -> datetime:
    """The deadline of what began then: the first moment at which as much time has counted as was given, but never more
    than `most` after the given one."""
    fair = deadline
    for one in merged(outages):
        if one.began >= fair:  # begins after the time was used up
            break
        fair += max(timedelta(), one.ended - max(one.began, began))
    return min(fair, deadline + most)
