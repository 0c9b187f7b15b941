"""Filters that a person saves for a list. They belong to that person alone and are not part of the record."""

from datetime import datetime
from uuid import UUID

from governance.boundary.services import text_check
from governance.console.models import SavedFilter
from governance.console.selectors.lists import filter_query, saved_filters
from reasoncodes.base.actors import Actor
from reasoncodes.base.errors import FieldError, InvalidInput, NotFound

# Bounds what one person can store for one list.
MOST = 20


def filter_save(*, actor: Actor, at: datetime, page: str, name: str, query: str) -> SavedFilter:
    """Saves a filter. A filter with the same name is replaced."""
    # PostgreSQL cannot store NUL, and the error would be a 500.
    name, kept = name.replace("\x00", "").strip(), filter_query(query.replace("\x00", "").replace("%00", ""))
    if not name or len(name) > 60:
        raise InvalidInput(errors=[FieldError("/name", "must have 1 to 60 characters")])
    # The name is free text: it may not contain a person's name or a secret either.
    text_check(text=name, pointer="/name")
    if not kept or len(kept) > 1000:
        raise InvalidInput(errors=[FieldError("/query", "filters nothing, or by too much")])
    known = {row.name for row in saved_filters(user_id=_person(actor), page=page)}
    if len(known | {name}) > MOST:
        raise InvalidInput(errors=[FieldError("/name", f"is one too many: {MOST} is the most for one list")])
    row, _ = SavedFilter.objects.update_or_create(
        user_id=_person(actor), page=page, name=name, defaults={"query": kept, "created_at": at}
    )
    return row


def filter_forget(*, actor: Actor, filter_id: UUID) -> None:
    """Deletes one of the person's own filters. Somebody else's is 404."""
    gone, _ = SavedFilter.objects.filter(id=filter_id, user_id=_person(actor)).delete()
    if not gone:
        raise NotFound


def _person(actor: Actor) -> UUID:
    if actor.id is None:
        raise NotFound
    return actor.id
