"""One search box for any id. A single hit opens at once; otherwise the hits are listed by kind."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.contrib import admin
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from attempts.lifecycle.selectors.attempts import attempts_by_key, attempts_by_trace
from governance.console.admin.base import ConsoleAdmin
from governance.console.selectors.lists import (
    accounts_by_slug,
    contracts_by_slug,
    keys_by_prefix,
    organizations_by_slug,
    policies_by_slug,
    uuid_or_none,
)
from workflows.runs.selectors.console import (
    definitions_by_slug,
    events_by_correlation,
    events_by_event_id,
    runs_by_case,
    runs_by_correlation,
)

# An idempotency key, the longest of the texts that can be searched for, has at most 200 characters.
LONGEST = 200
SECRET = re.compile(r"^(hp_[0-9a-f]{10})_[\w-]{20,}$")
PREFIX = re.compile(r"^(?:hp_)?([0-9a-f]{10})$")
SLUG = re.compile(r"^[a-z0-9][a-z0-9-]{0,62}$")
# How a row was found, and one indexed query each. A row's own id is looked up in every list.
BY_ID: tuple[tuple[str, Callable[[UUID], Iterable[Any]]], ...] = (
    ("run, by its case", lambda id_: runs_by_case(case_id=id_)),
    ("run, by a correlation id", lambda id_: runs_by_correlation(correlation_id=id_)),
    ("event, by its module's id", lambda id_: events_by_event_id(event_id=id_)),
    ("unmatched event, by its correlation id", lambda id_: events_by_correlation(correlation_id=id_)),
)
BY_TEXT: tuple[tuple[str, Callable[[str], Iterable[Any]]], ...] = (
    ("attempt, by its trace", lambda text: attempts_by_trace(trace=text)),
    ("attempt, by its key", lambda text: attempts_by_key(key=text)),
)
BY_SLUG: tuple[tuple[str, Callable[[str], Iterable[Any]]], ...] = (
    ("contract", lambda slug: contracts_by_slug(slug=slug)),
    ("definition", lambda slug: definitions_by_slug(slug=slug)),
    ("policy", lambda slug: policies_by_slug(slug=slug)),
    ("service account", lambda slug: accounts_by_slug(slug=slug)),
    ("organization", lambda slug: organizations_by_slug(slug=slug)),
)


@dataclass(frozen=True, slots=True)
class Hit:
    how: str
    title: str
    url: str
    where: str
    state: str


@require_safe
def search(request: HttpRequest) -> HttpResponse:
    term = request.GET.get("q", "").replace("\x00", "").strip()[:LONGEST]
    # Somebody pasted a whole API key. Only its prefix is used, and the page warns instead of redirecting.
    secret = SECRET.match(term)
    if secret:
        term = secret[1]
    hits = list(_hits(request, term)) if term else []
    pages = {hit.url for hit in hits}
    if len(pages) == 1 and not secret:
        return HttpResponseRedirect(pages.pop())
    groups: dict[str, list[Hit]] = {}
    for hit in hits:
        groups.setdefault(hit.how, []).append(hit)
    context = {"title": "Search", "term": term, "groups": groups, "secret": bool(secret), "found": len(hits)}
    return render(request, "admin/console/search.html", admin.site.each_context(request) | context)


def _hits(request: HttpRequest, term: str) -> Iterator[Hit]:
    seen: set[str] = set()
    for how, row in _rows(request, term):
        model_admin = admin.site.get_model_admin(type(row))
        # The selectors filter by organization; the list's own rule may be stricter.
        if not model_admin.has_view_permission(request, row):
            continue
        url = reverse(f"admin:{row._meta.app_label}_{row._meta.model_name}_change", args=[row.pk])
        if url not in seen:
            seen.add(url)
            state = str(getattr(row, "state", "") or getattr(row, "status", "") or "")
            yield Hit(how, str(row), url, str(getattr(row, "organization", None) or ""), state)


def _rows(request: HttpRequest, term: str) -> Iterator[tuple[str, Any]]:
    id_ = uuid_or_none(term)
    if id_ is not None:
        yield from _own_ids(request, id_)
        for how, find in BY_ID:
            yield from ((how, row) for row in find(id_))
    for how, look in BY_TEXT:
        yield from ((how, row) for row in look(term))
    if SLUG.match(term):
        for how, look in BY_SLUG:
            yield from ((how, row) for row in look(term))
    if prefix := PREFIX.match(term):
        yield from (("API key", row) for row in keys_by_prefix(prefix=prefix[1]))


def _own_ids(request: HttpRequest, id_: UUID) -> Iterator[tuple[str, Any]]:
    """Looks for a row with this id in every list of the console, by primary key and with the list's own rules."""
    for model, model_admin in admin.site._registry.items():
        if isinstance(model_admin, ConsoleAdmin) and model._meta.pk.get_internal_type() == "UUIDField":
            row = model_admin.get_object(request, str(id_)) if model_admin.has_view_permission(request) else None
            if row is not None:
                yield str(model._meta.verbose_name), row
