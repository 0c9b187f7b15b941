"""Reads who wrote to something since its last approval."""

from collections.abc import Collection
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from governance.authorship.models import Authorship
from governance.authorship.states import WorkKind
from reasoncodes.base.tenancy import every_tenant


def lineages_of(*, kind: WorkKind, subject_ids: Collection[UUID]) -> dict[UUID, tuple[int, frozenset[UUID]]]:
    """The current lineage of each subject and its authors. A subject without an author is missing."""
    found: dict[UUID, dict[int, set[UUID]]] = {}
    # Whoever asks has locked or read the subject already. A narrower scope must not make an author disappear.
    with every_tenant():
        rows = Authorship.objects.filter(kind=kind, subject_id__in=subject_ids)
        for subject_id, lineage, person_id in rows.values_list("subject_id", "lineage", "person_id"):
            found.setdefault(subject_id, {}).setdefault(lineage, set()).add(person_id)
    return {subject: (max(known), frozenset(known[max(known)])) for subject, known in found.items()}


def authors_of(*, kind: WorkKind, subject_id: UUID) -> frozenset[UUID]:
    """Everybody who wrote to it since its last approval, in their own session or with a service's key."""
    return lineages_of(kind=kind, subject_ids=[subject_id]).get(subject_id, (0, frozenset()))[1]


def services_behind(*, person_ids: Collection[UUID]) -> "QuerySet[Authorship, Any]":
    """The services that one of these people is or ever was responsible for, for a query: the same rows as `authors_of`
    reads, seen from the people. A service has one lineage, because its past people always count."""
    # As above: the service of another organization, with an administrator's key, may have asked.
    with every_tenant():
        return Authorship.objects.filter(kind=WorkKind.SERVICE, person_id__in=person_ids).values("subject_id")
