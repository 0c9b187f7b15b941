"""Keeps who wrote to what, and answers the one question of every rule that keeps two people apart: is this somebody
else? A service counts as the person who is responsible for it."""

from collections.abc import Collection
from datetime import datetime
from uuid import UUID

from governance.authorship.errors import NobodyResponsible
from governance.authorship.models import Authorship
from governance.authorship.selectors import authors_of, lineages_of
from governance.authorship.states import WorkKind
from governance.ledger.services import actor_reference
from governance.people.selectors.people import author_of
from governance.violations.errors import SecondPersonNeeded
from reasoncodes.base.actors import Actor, ActorKind


def author_require(*, actor: Actor) -> UUID | None:
    """The person who counts as the author of what the actor writes; None for the program itself."""
    person_id = author_of(actor=actor)
    if person_id is None and actor.kind is ActorKind.SERVICE:
        raise NobodyResponsible(subject_type="service_account", subject_id=actor.id)
    return person_id


def persons_behind(*, actor: Actor) -> frozenset[UUID]:
    """The person; for a service everybody who is or ever was responsible for it. Otherwise somebody could write with
    its key after another name was put there."""
    person_id = author_of(actor=actor)
    now = frozenset() if person_id is None else frozenset({person_id})
    if actor.kind is not ActorKind.SERVICE or actor.id is None:
        return now
    return now | authors_of(kind=WorkKind.SERVICE, subject_id=actor.id)


def authorship_add(
    *,
    actor: Actor,
    at: datetime,
    organization_id: UUID | None,
    kind: WorkKind,
    subject_ids: Collection[UUID],
    renewed: Collection[UUID] = (),
) -> None:
    """Adds the actor to the authors. `renewed`: subjects whose content was approved until now; their earlier authors
    no longer count. In the caller's transaction, with the subjects locked or new."""
    people = persons_behind(actor=actor)
    if not people or not subject_ids:
        return
    known = lineages_of(kind=kind, subject_ids=subject_ids)
    through_id = actor.id if actor.kind is ActorKind.SERVICE else None
    rows = []
    for subject_id in subject_ids:
        lineage, authors = known.get(subject_id, (1, frozenset()))
        if subject_id in renewed:
            lineage, authors = lineage + 1, frozenset()
        rows += [
            Authorship(
                organization_id=organization_id,
                kind=kind,
                subject_id=subject_id,
                lineage=lineage,
                person_id=person_id,
                through_id=through_id,
                at=at,
            )
            for person_id in sorted(people - authors)
        ]
    Authorship.objects.bulk_create(rows)


def authorship_copy(*, at: datetime, organization_id: UUID, kind: WorkKind, copies: dict[UUID, UUID]) -> None:
    """The authors of the old subjects are also those of the new ones. `copies`: the old one's id by the new one's."""
    known = lineages_of(kind=kind, subject_ids=set(copies.values()))
    have = lineages_of(kind=kind, subject_ids=set(copies))
    Authorship.objects.bulk_create(
        Authorship(organization_id=organization_id, kind=kind, subject_id=new, person_id=person_id, at=at)
        for new, old in copies.items()
        for person_id in sorted(known.get(old, (1, frozenset()))[1] - have.get(new, (1, frozenset()))[1])
    )


def second_person_require(
    *, actor: Actor, kind: WorkKind, subject_id: UUID, started_ref: str, organization_id: UUID | None, words: str = ""
) -> None:
    """Refuses whoever started it, in whichever way they come back, and a service that nobody is responsible for.
    `started_ref`: how the subject's own row names who started it."""
    people = persons_behind(actor=actor)
    nobody = not people and actor.kind is ActorKind.SERVICE
    same = bool(started_ref) and started_ref == actor_reference(actor)
    if nobody or same or people & authors_of(kind=kind, subject_id=subject_id):
        raise SecondPersonNeeded(words, subject_type=kind.value, subject_id=subject_id, organization_id=organization_id)
