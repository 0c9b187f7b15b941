"""Purge of what retention no longer demands: a preview for whoever asks, an order by a person, never by the clock."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from uuid import UUID

from django.db import transaction

from governance.models import ErasureOrder, Organization
from governance.retention import Subject, blockers_counted
from governance.selectors.retention import holds_active, organizations_of
from governance.services.erasure import erasure_order
from governance.services.note import note_create
from governance.services.violation import violations_recorded
from governance.states import ErasureKind
from governance.subjects import subject_kinds
from reasoncodes.actors import Actor
from reasoncodes.codes import Scope
from reasoncodes.errors import InvalidInput, NotFound
from reasoncodes.selectors import reason_code_require

MOST = 10_000
MOST_LOOKED_AT = 100_000
PAGE = 1000
FIRST = UUID(int=0)


@dataclass(frozen=True, slots=True)
class Preview:
    """What is over in one organization, by kind; `blocked` by reason. `more`: not everything was looked at, because
    an order has at most MOST items and a preview its end."""

    organization: Organization
    over: dict[str, int] = field(default_factory=dict)
    blocked: dict[str, int] = field(default_factory=dict)
    unstamped: int = 0
    more: bool = False
    subjects: list[Subject] = field(default_factory=list, repr=False)

    @property
    def regions(self) -> str:
        return ", ".join(self.organization.regions) or "none"

    @property
    def total(self) -> int:
        return sum(self.over.values())


def purge_preview(*, actor: Actor, at: datetime, organization_ids: list[UUID] | None = None) -> list[Preview]:
    """Per organization that the actor acts in. Writes nothing."""
    ids = list(actor.organization_ids) if organization_ids is None else organization_ids
    if any(not actor.may_act_in(one) for one in ids):
        raise NotFound
    return [_preview(organization, at) for organization in organizations_of(ids=ids)]


def _preview(organization: Organization, at: datetime) -> Preview:
    preview = Preview(organization)
    holds = holds_active(organization_id=organization.id)
    looked_at = 0
    for kind, page in _due(organization, at):
        free, blocked = blockers_counted(page, holds=holds, at=at)
        preview.subjects.extend(free)
        preview.over[kind] = preview.over.get(kind, 0) + len(free)
        for code, count in blocked.items():
            preview.blocked[code] = preview.blocked.get(code, 0) + count
        looked_at += len(page)
        if len(preview.subjects) > MOST - PAGE or looked_at >= MOST_LOOKED_AT:
            return replace(preview, more=True)
    unstamped = sum(kind.unstamped(organization.id, MOST) for kind in subject_kinds())
    over = {kind: count for kind, count in preview.over.items() if count}
    return replace(preview, unstamped=unstamped, over=over)


def _due(organization: Organization, at: datetime) -> Iterator[tuple[str, list[Subject]]]:
    for kind in subject_kinds():
        after = FIRST
        while page := kind.due(organization.id, at, after, PAGE):
            yield kind.name, page
            after = max(one.id for one in page)


@violations_recorded
def purge_order(*, actor: Actor, at: datetime, organization_id: UUID, reason_code: str, note: str = "") -> ErasureOrder:
    """For everything that is over now. Each item is looked at again, by the database, when its turn comes."""
    if not actor.may_act_in(organization_id):
        raise NotFound
    with transaction.atomic():
        reason_code_require(organization_id=organization_id, scope=Scope.INTERVENTION, code=reason_code, note=note)
        (preview,) = purge_preview(actor=actor, at=at, organization_ids=[organization_id])
        if not preview.subjects:
            raise InvalidInput("Nothing is over and free; nothing was ordered.")
        return erasure_order(
            actor=actor,
            at=at,
            organization_id=organization_id,
            kind=ErasureKind.PURGE,
            subjects=preview.subjects,
            reason_code=reason_code,
            note=note_create(organization_id=organization_id, text=note),
        )
