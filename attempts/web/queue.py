"""The queue: the page, and its list alone for whoever watches it."""

from datetime import datetime
from typing import Any

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.template.loader import render_to_string
from django.utils.http import urlencode

from attempts.selectors.review import database_now
from attempts.selectors.review_queue import (
    COUNTED,
    Cursor,
    QueueFilter,
    QueueView,
    Reader,
    cursor_read,
    queue_counts,
    queue_page,
    reader_of,
)
from attempts.states import ReviewKind
from attempts.web.base import ReviewPage, etag_of, live, unless_known

LONGEST = 100
VIEW_NAMES = {
    QueueView.MINE: "Mine",
    QueueView.GROUPS: "My groups",
    QueueView.UNCLAIMED: "Unclaimed",
    QueueView.EXPIRING: "Expiring soon",
    QueueView.WAITING: "Waiting on others",
    QueueView.ALL: "All open",
    QueueView.HISTORY: "History",
}
EMPTY_WORDS = {
    QueueView.MINE: "You have no claimed items. Claim an item on its card, and it stays here for 15 minutes.",
    QueueView.GROUPS: "Nothing waits for you. New items appear here on their own.",
    QueueView.UNCLAIMED: "Nothing waits for your groups, or everything is claimed.",
    QueueView.EXPIRING: "Nothing of yours expires within the hour.",
    QueueView.WAITING: "Nothing that you signed waits for somebody else.",
    QueueView.ALL: "Nothing is open in your organizations.",
    QueueView.HISTORY: "Nothing has been decided yet.",
}


def wanted_from(query: QueryDict) -> QueueFilter:
    """An unknown view is the usual one: addresses are typed, mailed and kept for years."""
    name = query.get("view", "")
    view = QueueView(name) if name in set(QueueView) else QueueView.GROUPS
    plain = {key: query.get(key, "").strip()[:LONGEST] for key in ("tier", "risk", "kind", "contract")}
    return QueueFilter(view=view, text=query.get("q", "").strip()[:LONGEST], **plain)


def query_of(wanted: QueueFilter, **changes: Any) -> str:
    """The address's query for this queue; what is not set is left out."""
    values = {
        "view": wanted.view.value,
        "tier": wanted.tier,
        "risk": wanted.risk,
        "kind": wanted.kind,
        "contract": wanted.contract,
        "q": wanted.text,
    } | changes
    return urlencode({key: value for key, value in values.items() if value})


def queue_context(*, reader: Reader, wanted: QueueFilter, now: datetime, after: Cursor | None = None) -> dict[str, Any]:
    page, counts = queue_page(reader=reader, wanted=wanted, now=now, after=after), queue_counts(reader=reader, now=now)
    tabs = [
        {
            "name": VIEW_NAMES[view],
            "query": query_of(QueueFilter(view)),
            "current": view is wanted.view,
            "count": _shown(counts[view]) if view in counts else "",
        }
        for view in QueueView
    ]
    filtered = any((wanted.tier, wanted.risk, wanted.kind, wanted.contract, wanted.text))
    return {
        "wanted": wanted,
        "query": query_of(wanted),
        "tabs": tabs,
        "rows": page.rows,
        "next_query": query_of(wanted, after=str(page.next)) if page.next else "",
        "first_query": query_of(wanted) if after else "",
        "empty": "Nothing matches. Remove a filter." if filtered else EMPTY_WORDS[wanted.view],
        "filtered": filtered,
        "is_history": wanted.view is QueueView.HISTORY,
        "risks": list(RISKS),
        "kinds": [(kind.value, words) for kind, words in KIND_WORDS.items()],
        "tiers": sorted({tier for tiers in reader.tiers.values() for tier in tiers}),
        "now": now,
    }


RISKS = ("low", "medium", "high")
KIND_WORDS = {ReviewKind.RELEASE: "Actions to release", ReviewKind.HUMAN_REVIEW: "Cases to judge"}


def _shown(count: int) -> str:
    return f"{COUNTED}+" if count > COUNTED else str(count)


class QueuePageView(ReviewPage):
    def get(self, request: HttpRequest) -> HttpResponse:
        now = database_now()
        reader, wanted = reader_of(actor=self.actor, now=now), wanted_from(request.GET)
        context = queue_context(reader=reader, wanted=wanted, now=now, after=_after(request))
        return render(request, "review/queue.html", context)


class QueueLiveView(ReviewPage):
    """The list and the counts. Its entity tag is of what is shown, so a quiet queue costs its readers nothing."""

    def get(self, request: HttpRequest) -> HttpResponse:
        now = database_now()
        reader, wanted = reader_of(actor=self.actor, now=now), wanted_from(request.GET)
        context = queue_context(reader=reader, wanted=wanted, now=now, after=_after(request))
        text = render_to_string("review/parts/list.html", context, request=request)
        etag = etag_of(text)
        return unless_known(request, etag) or live(HttpResponse(text), etag)


def _after(request: HttpRequest) -> Cursor | None:
    text = request.GET.get("after", "")
    return cursor_read(text) if text else None
