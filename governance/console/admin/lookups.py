"""Which parts of an address a list of the console understands, and which columns no list may show. Everything that is
not declared is refused.

Django's admin passes any `field__lookup=value` of an address to the database, also through relations. The number of
rows in the answer then tells what is in a column that nobody may see, one character after the other."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from django.contrib import admin
from django.contrib.admin.filters import (
    AllValuesFieldListFilter,
    BooleanFieldListFilter,
    ChoicesFieldListFilter,
    FieldListFilter,
    RelatedFieldListFilter,
)
from django.contrib.admin.options import IS_POPUP_VAR, TO_FIELD_VAR
from django.contrib.admin.utils import get_fields_from_path
from django.contrib.admin.views.main import ALL_VAR, ORDER_VAR, PAGE_VAR, SEARCH_VAR
from django.core.exceptions import FieldDoesNotExist
from django.db.models import Model
from django.db.models.constants import LOOKUP_SEP
from django.http import HttpRequest

from governance.console.errors import LookupRefused

# What Django's own filters put into addresses. A kind that is not listed here declares nothing, so it is refused.
ENDINGS: dict[type[FieldListFilter], tuple[str, ...]] = {
    BooleanFieldListFilter: ("__exact", "__isnull"),
    ChoicesFieldListFilter: ("__exact", "__isnull"),
    AllValuesFieldListFilter: ("", "__isnull"),
    RelatedFieldListFilter: ("__id__exact", "__isnull"),  # by the row's id, and no other column of it
}
# They open a list as a window that hands a chosen row, or one column of it, to another page. No page of ours does.
WINDOWS = frozenset({IS_POPUP_VAR, TO_FIELD_VAR})
PAGE = re.compile(r"[0-9]{1,6}")
ORDER = re.compile(r"-?[0-9]{1,2}(\.-?[0-9]{1,2}){0,9}")

SECRET = re.compile(r"password|salt|secret|token|sealed|stream_key|credential|recovery|private")
# A short list of columns that the pattern does not find, or finds wrongly.
SECRET_COLUMNS = frozenset({("apikey", "sha256"), ("authenticator", "data"), ("session", "session_key")})
HARMLESS = frozenset({("attempt", "lease_token")})  # a number that grows with each lease


def is_secret(model: type[Model], column: str) -> bool:
    """Whether a column must never be filtered, ordered, searched or exported."""
    name = (str(model._meta.model_name), column)
    return name not in HARMLESS and (name in SECRET_COLUMNS or SECRET.search(column) is not None)


def filters_declared(list_filter: Iterable[Any], *, model: type[Model]) -> frozenset[str]:
    """The parameters of these filters in addresses."""
    return frozenset(name for one in list_filter for name in _parameters(one, model))


def _parameters(declared: Any, model: type[Model]) -> Iterator[str]:
    if isinstance(declared, type) and issubclass(declared, admin.SimpleListFilter):
        yield str(declared.parameter_name)
        return
    path, kind = declared if isinstance(declared, tuple | list) else (declared, None)
    field = get_fields_from_path(model, path)[-1]
    kind = kind or next(cls for fits, cls in FieldListFilter._field_list_filters if fits(field))  # type: ignore[attr-defined]
    yield from (f"{path}{ending}" for ending in ENDINGS.get(kind, ()))


def refuse_undeclared(request: HttpRequest, *, filters: frozenset[str], searched: bool) -> None:
    """Refuses an address with a parameter that the list does not have. Nothing of the address is repeated."""
    known = filters | {PAGE_VAR, ORDER_VAR, ALL_VAR} | ({SEARCH_VAR} if searched else set())
    if not request.GET.keys() <= known:
        raise LookupRefused
    for name, form in ((PAGE_VAR, PAGE), (ORDER_VAR, ORDER)):
        if not all(form.fullmatch(value) for value in request.GET.getlist(name) if value):
            raise LookupRefused
    # PostgreSQL cannot compare with NUL. The answer would be an error of the database instead of a refusal.
    if any("\x00" in value for values in dict(request.GET.lists()).values() for value in values):
        raise LookupRefused


def refuse_windows(request: HttpRequest) -> None:
    """For the pages of rows. With `_to_field` Django would find a row by another column than its id."""
    if WINDOWS & {*request.GET, *request.POST}:
        raise LookupRefused


def refuse_hidden_order(request: HttpRequest, *, chosen: Any) -> None:
    """Refuses an order by a column that the list does not show, or shows without an order. Django ignores it."""
    for part in request.GET.get(ORDER_VAR, "").split("."):
        place = abs(int(part)) if part else -1
        if part and (place >= len(chosen.list_display) or not _sorts(chosen, chosen.list_display[place])):
            raise LookupRefused


def _sorts(chosen: Any, column: Any) -> bool:
    allowed = chosen.sortable_by is None or column in chosen.sortable_by
    return bool(allowed and chosen.get_ordering_field(column))


def secrets_listed(model_admin: Any) -> list[str]:
    """The secret columns that a page shows, searches, orders or filters by. There must be none."""
    model: type[Model] = model_admin.model
    paths = [name for name in model_admin.list_display if isinstance(name, str)]
    paths += [str(name).lstrip("=^@") for name in model_admin.search_fields]
    paths += [str(name).lstrip("-") for name in (model_admin.ordering or model._meta.ordering or ())]
    paths += [str(getattr(getattr(model_admin, name, None), "admin_order_field", "") or "") for name in list(paths)]
    for one in model_admin.list_filter:
        simple = isinstance(one, type)
        paths.append(str(one.parameter_name) if simple else one[0] if isinstance(one, tuple | list) else one)
    return [path for path in paths if _leads_to_secret(model, path.lstrip("-"))]


def _leads_to_secret(model: type[Model], path: str) -> bool:
    """Follows relations as far as the path names columns."""
    for part in path.split(LOOKUP_SEP):
        if is_secret(model, part):
            return True
        try:
            field: Any = model._meta.get_field(part)
        except FieldDoesNotExist:
            return False
        model = field.related_model or model
    return False
