"""Model instances without Model.__init__, which costs more than the row it holds: for the way of every request."""

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, TypeVar

from django.db import DEFAULT_DB_ALIAS
from django.db.models import NOT_PROVIDED, Model
from django.db.models.base import ModelState

M = TypeVar("M", bound=Model)


def stored_row(model: type[M], names: Iterable[str], values: Sequence[Any]) -> M | None:
    """From columns that a query gave. A field that is not among `names` is deferred: touching it asks the database.
    None for the empty side of a LEFT JOIN, whose first column is empty."""
    if values[0] is None:
        return None
    row = _bare(model)
    row.__dict__.update(zip(names, values, strict=True))
    row._state.adding = False
    row._state.db = DEFAULT_DB_ALIAS
    return row


def new_row(model: type[M], **values: Any) -> M:
    """Unsaved, with the plain defaults of its fields. By column names (`organization_id`); what has a default that is
    made anew for every row (an id, a list) must be given."""
    row = _bare(model)
    row.__dict__.update(_defaults(model))
    row.__dict__.update(values)
    return row


def _bare(model: type[M]) -> M:
    row = model.__new__(model)
    row._state = ModelState()
    return row


@cache
def _defaults(model: type[Model]) -> dict[str, Any]:
    found = {}
    for field in model._meta.local_concrete_fields:
        if field.default is NOT_PROVIDED:
            found[field.attname] = None if field.null else ""
        elif not callable(field.default):
            found[field.attname] = field.default
    return found
