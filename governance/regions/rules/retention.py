"""Computes until when records must be kept."""

from __future__ import annotations

from datetime import UTC, datetime

from governance.regions.rules.merge import EffectiveProfile


def retention_until(effective: EffectiveProfile, *, started_at: datetime) -> datetime:
    """The end of retention in UTC, in calendar years from `started_at`. The profiles count from the last linked
    activity: pass its time, and compute again when there is a newer one."""
    return years_later(started_at, years=effective.terms.retention_years)


def years_later(started_at: datetime, *, years: int) -> datetime:
    """The same day a number of years later, in UTC."""
    if started_at.tzinfo is None:
        raise ValueError("A time without a zone has no place on the record.")
    start = started_at.astimezone(UTC)
    year = start.year + years
    try:
        return start.replace(year=year)
    except ValueError:
        # 29 February in a year without one. The day after it: a day too long is safe, a day too short is not.
        return start.replace(year=year, month=3, day=1)
