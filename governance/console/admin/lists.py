"""What every list of the console shares: bounded pages, exact search, filters that a person saves, and CSV export."""

import csv
import re
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar
from uuid import UUID

import structlog
from django.contrib import admin, messages
from django.contrib.admin import ShowFacets
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.utils import label_for_field, lookup_field
from django.core.exceptions import ObjectDoesNotExist, PermissionDenied
from django.core.paginator import Paginator
from django.db.models import Q, QuerySet
from django.http import (
    HttpRequest,
    HttpResponse,
    HttpResponseNotAllowed,
    HttpResponseRedirect,
    QueryDict,
    StreamingHttpResponse,
)
from django.http.response import HttpResponseBase
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.functional import cached_property
from django.utils.html import strip_tags
from unfold.admin import ModelAdmin

from governance.console.admin.lookups import (
    filters_declared,
    refuse_hidden_order,
    refuse_undeclared,
    refuse_windows,
)
from governance.console.errors import LookupRefused
from governance.console.selectors.lists import NEWEST, filter_query, in_batches, newest, saved_filters
from governance.console.services import filter_forget, filter_save
from reasoncodes.base.actors import Actor, ActorKind
from reasoncodes.base.errors import DomainError

# An export reads every row through the admin's columns: without a limit one click could keep a thread for hours.
MOST_ROWS = 50_000
# What a spreadsheet takes for the beginning of a formula, also in full-width forms and after blanks. A value from a
# caller would otherwise run when an operator opens the file.
FORMULA = re.compile(r"^[\s\x00]*[=+\-@|%＝＋－＠]|^[\t\r\n]")
NUMBER = re.compile(r"^-?\d+(\.\d+)?$")
CUT = "This file has only the newest {:,} rows. Narrow the filter to export the others."


class CsvLine:
    """csv writes to an object; this one returns the line instead of storing it, so that it can be streamed."""

    def write(self, text: str) -> str:
        return text


def guarded(value: Any) -> str:
    """Text that no spreadsheet runs: an apostrophe goes before what looks like a formula."""
    text = "" if value is None else str(value)
    if NUMBER.match(text):
        return text
    return f"'{text}" if FORMULA.match(text) else text


def export(*, model_admin: Any, names: Sequence[str], rows: QuerySet[Any], filename: str) -> StreamingHttpResponse:
    """`names` are the list's columns. The id comes first, because a row is found again by it."""
    chosen = ["id", *(name for name in names if name != "id")]
    head = [guarded(label_for_field(name, rows.model, model_admin)) for name in chosen]

    def read(row: Any) -> list[str]:
        return [guarded(_value(model_admin, name, row)) for name in chosen]

    # Created here, inside the request and its tenant scope; the rows are read later, while the response is sent.
    # One row more than is written: that is how the end of the file knows whether to say that it was cut.
    batches = in_batches(rows, limit=MOST_ROWS + 1, read=read)
    response = StreamingHttpResponse(_lines(head, batches), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{filename}.csv"'
    response["Cache-Control"] = "no-store"
    return response


def _lines(head: list[str], batches: Iterator[list[list[str]]]) -> Iterator[str]:
    writer = csv.writer(CsvLine())
    # With a byte order mark, because spreadsheets otherwise read UTF-8 as a local encoding.
    yield "\ufeff" + str(writer.writerow(head))
    written = 0
    for batch in batches:
        for cells in batch[: MOST_ROWS - written]:
            yield str(writer.writerow(cells))
        written += len(batch)
    if written > MOST_ROWS:
        yield str(writer.writerow([CUT.format(MOST_ROWS)]))


def _value(model_admin: Any, name: str, row: Any) -> str:
    try:
        _, attribute, value = lookup_field(name, row, model_admin)
    # A column through a relation that is empty shows nothing, as in the list.
    except ObjectDoesNotExist:
        return ""
    if hasattr(value, "isoformat"):
        return str(value.isoformat())
    text = value if isinstance(value, str) else "" if value is None else str(value)
    return strip_tags(text) if hasattr(value, "__html__") or callable(attribute) else text


log = structlog.get_logger("holdpoint.console")


class BoundedPaginator(Paginator):  # type: ignore[type-arg]
    """Counts up to 10,000 and no further: a list must not become slower because more rows are waiting."""

    LIMIT = 10_000

    @cached_property
    def count(self) -> int:
        return int(self.object_list.order_by()[: self.LIMIT].count())  # type: ignore[attr-defined]


def choice_filter(
    name: str, words: dict[str, str], *, field: str = "", indexed: bool = True
) -> type[admin.SimpleListFilter]:
    """A filter over known values. Without an index it filters the newest rows only and says so; list it after the
    indexed filters, because it applies to the rows that they leave. `field` is for a column that has another name than
    the filter has in addresses."""

    # Django's own filter would read the whole table to find out which values it has.
    class ChoiceFilter(admin.SimpleListFilter):
        title = name.replace("_", " ") + ("" if indexed else f", of the newest {NEWEST:,}")
        parameter_name = name
        served_by_index = indexed

        def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
            return list(words.items())

        def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
            if self.value() not in words:
                return queryset
            return (queryset if indexed else newest(queryset)).filter(**{field or name: self.value()})

    return ChoiceFilter


class ListPages(ModelAdmin):
    """A list with saved filters and export. It understands the parameters that it declares, and no others. Every page
    of the console derives from it: config.apps removes those that do not."""

    hot: ClassVar[bool] = False
    """For a table that grows with every request: its list is searched by whole ids only, through an index."""
    paginator = BoundedPaginator
    # It would count the whole table for every page.
    show_full_result_count = False
    # Facets would count every choice of every filter.
    show_facets = ShowFacets.NEVER

    def url_name(self, page: str) -> str:
        return f"{self.opts.app_label}_{self.opts.model_name}_{page}"

    def page_url(self, page: str, *args: Any) -> str:
        return reverse(f"admin:{self.url_name(page)}", args=args)

    def is_list(self, request: HttpRequest) -> bool:
        """True for the list and its export, false for the page of one row."""
        match = request.resolver_match
        return match is not None and match.url_name in {self.url_name("changelist"), self.url_name("export")}

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        return [
            path("export/", view(self.export_view), name=self.url_name("export")),
            path("filters/", view(self.filter_save_view), name=self.url_name("filter_save")),
            path("filters/<uuid:filter_id>/forget/", view(self.filter_forget_view), name=self.url_name("forget")),
            *super().get_urls(),
        ]

    # -- what an address may ask for ----------------------------------------------------------------------------------
    def lookup_allowed(self, lookup: str, value: Any, request: HttpRequest | None = None) -> bool:
        declared = self.list_filter if request is None else self.get_list_filter(request)
        return lookup in filters_declared(declared, model=self.model)

    def to_field_allowed(self, request: HttpRequest, to_field: str) -> bool:
        return False

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        """For the list, its actions and its export."""
        filters = filters_declared(self.get_list_filter(request), model=self.model)
        try:
            refuse_undeclared(request, filters=filters, searched=bool(self.get_search_fields(request)))
            chosen = super().get_changelist_instance(request)
            refuse_hidden_order(request, chosen=chosen)
        except (LookupRefused, IncorrectLookupParameters) as refusal:
            user: Any = request.user
            log.warning("console_lookup_refused", list=self.url_name("list"), user=str(user.pk))
            raise LookupRefused from refusal
        return chosen

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        refuse_windows(request)
        return super().changeform_view(request, *args, **kwargs)

    def history_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        refuse_windows(request)
        return super().history_view(request, *args, **kwargs)

    def delete_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        refuse_windows(request)
        return super().delete_view(request, *args, **kwargs)

    # -- search -----------------------------------------------------------------------------------------------------
    def matches(self, term: str) -> Q | None:
        """For a hot list: the rows that the term names exactly, each way with an index. None if the term cannot name
        one."""
        return None

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        if not self.hot or not search_term:
            return super().get_search_results(request, queryset, search_term)
        found = self.matches(search_term.strip())
        return (queryset.none() if found is None else queryset.filter(found)), False

    # -- the list ---------------------------------------------------------------------------------------------------
    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        user: Any = request.user
        here = filter_query(request.GET.urlencode())
        tools = {
            "saved_filters": saved_filters(user_id=user.pk, page=self.url_name("list")),
            "filter_here": here,
            "export_url": f"{self.page_url('export')}?{request.GET.urlencode()}",
            "export_limit": MOST_ROWS,
            "list_limit": BoundedPaginator.LIMIT,
        }
        return super().changelist_view(request, tools | (extra_context or {}))

    def export_view(self, request: HttpRequest) -> HttpResponseBase:
        """What the list shows with this filter, as CSV. It only reads, so it is a GET."""
        if request.method != "GET":
            return HttpResponseNotAllowed(["GET"])
        if not self.has_view_permission(request):
            raise PermissionDenied
        chosen = self.get_changelist_instance(request)
        user: Any = request.user
        # Many rows leave Holdpoint at once: the log says who took them.
        log.info("console_export", list=self.url_name("list"), user=str(user.pk))
        name = f"{self.opts.model_name}-{timezone.now():%Y%m%d-%H%M%S}"
        columns = [name for name in self.get_list_display(request) if name != "action_checkbox"]
        return export(model_admin=self, names=columns, rows=chosen.queryset, filename=name)

    # -- saved filters ----------------------------------------------------------------------------------------------
    def filter_save_view(self, request: HttpRequest) -> HttpResponse:
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        if not self.has_view_permission(request):
            raise PermissionDenied
        query = filter_query(request.POST.get("query", ""))
        known = filters_declared(self.get_list_filter(request), model=self.model)
        if not QueryDict(query).keys() <= known:
            raise LookupRefused
        try:
            made = filter_save(
                actor=self._person(request),
                at=timezone.now(),
                page=self.url_name("list"),
                name=request.POST.get("name", ""),
                query=query,
            )
            messages.success(request, f"Saved as “{made.name}”. Only you see it.")
        except DomainError as refusal:
            messages.error(request, f"Not saved: {refusal.detail} {' '.join(f.message for f in refusal.errors)}")
        return HttpResponseRedirect(f"{self.page_url('changelist')}?{query}")

    def filter_forget_view(self, request: HttpRequest, filter_id: UUID) -> HttpResponse:
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        filter_forget(actor=self._person(request), filter_id=filter_id)
        messages.success(request, "Forgotten.")
        return HttpResponseRedirect(self.page_url("changelist"))

    @staticmethod
    def _person(request: HttpRequest) -> Actor:
        user: Any = request.user
        return Actor(ActorKind.PERSON, user.pk)
