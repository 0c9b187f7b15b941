"""Reads the read audit: who opened which record."""

from uuid import UUID

from django.db.models import QuerySet

from governance.sealing.models import ReadAccess


def read_access_list(
    *, subject_kind: str | None = None, subject_id: UUID | None = None, actor_ref: str | None = None
) -> QuerySet[ReadAccess]:
    rows = ReadAccess.objects.order_by("-id")
    asked = {"subject_kind": subject_kind, "subject_id": subject_id, "actor_ref": actor_ref}
    return rows.filter(**{name: value for name, value in asked.items() if value is not None})
