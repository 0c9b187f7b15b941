"""What higher apps do when a person's access ends: they hold work that governance knows nothing about."""

from datetime import datetime
from typing import Protocol
from uuid import UUID

from reasoncodes.base.actors import Actor


class WorkRelease(Protocol):
    """Gives back what the person holds, in the caller's transaction, before the person's row is locked. Returns how
    many of what."""

    def __call__(self, *, actor: Actor, at: datetime, user_id: UUID) -> dict[str, int]: ...


_releases: list[WorkRelease] = []


def register_work_release(release: WorkRelease) -> None:
    if release not in _releases:
        _releases.append(release)


def work_releases() -> list[WorkRelease]:
    return list(_releases)
