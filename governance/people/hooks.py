"""What follows when a person loses a role or all access: higher apps hold work that governance knows nothing about, and
register here what they do with it."""

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


class StandingLost(Protocol):
    """`role` is the one that was taken; None: the person's access ended, with all roles of the organization."""

    def __call__(
        self, *, user_id: UUID, organization_id: UUID, role: str | None, actor: Actor, at: datetime
    ) -> None: ...


_standing_lost: list[StandingLost] = []


def on_standing_lost(handler: StandingLost) -> StandingLost:
    """Registers a handler. It runs inside the transaction that takes the role, while the person's row is locked. An
    error in it rolls the change back, so it must not wait for locks that others take before the person's row."""
    # Registered once, also if `ready()` runs again.
    if handler not in _standing_lost:
        _standing_lost.append(handler)
    return handler


def standing_lost(*, user_id: UUID, organization_id: UUID, role: str | None, actor: Actor, at: datetime) -> None:
    for handler in _standing_lost:
        handler(user_id=user_id, organization_id=organization_id, role=role, actor=actor, at=at)
