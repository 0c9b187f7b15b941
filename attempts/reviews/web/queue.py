"""The page of the review queue, its list alone for refreshes, and the pages of a bulk decision."""

from datetime import datetime
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.http import urlencode

from attempts.reviews.selectors.card import review_card
from attempts.reviews.selectors.queue import (
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
from attempts.reviews.selectors.reviews import MOST, bulk_rows, bulk_widths, database_now
from attempts.reviews.services.bulk import ReviewBulkItem, review_bulk
from attempts.reviews.states import ReviewKind, VoteVerdict
from attempts.reviews.web.base import ReviewPage, WordForm, etag_of, hold_back_seconds, live, read, unless_known
from reasoncodes.base.errors import FieldError, InvalidInput
from reasoncodes.codes import Scope
from reasoncodes.selectors import reason_code_choices

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
    QueueView.WAITING: "Nothing that you approved waits for other people.",
    QueueView.ALL: "Nothing is open in your organizations.",
    QueueView.HISTORY: "Nothing has been decided yet.",
}


def wanted_from(query: QueryDict) -> QueueFilter:
    """The filter in a URL. An unknown view becomes the usual one: people keep and mail old URLs."""
    name = query.get("view", "")
    view = QueueView(name) if name in set(QueueView) else QueueView.GROUPS
    plain = {key: query.get(key, "").strip()[:LONGEST] for key in ("tier", "risk", "kind", "contract")}
    return QueueFilter(view=view, text=query.get("q", "").strip()[:LONGEST], **plain)


def query_of(wanted: QueueFilter, **changes: Any) -> str:
    """The query of the URL for this filter, without empty values."""
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
        "covered_rows": {row.id: reader.covered_in(row) for row in page.rows} if reader.covers else {},
        "next_query": query_of(wanted, after=str(page.next)) if page.next else "",
        "first_query": query_of(wanted) if after else "",
        "empty": "Nothing matches. Remove a filter." if filtered else EMPTY_WORDS[wanted.view],
        "filtered": filtered,
        "is_history": wanted.view is QueueView.HISTORY,
        "risks": list(RISKS),
        "kinds": [(kind.value, words) for kind, words in KIND_WORDS.items()],
        "tiers": sorted({tier for tiers in reader.tiers.values() for tier in tiers}),
        "hold_back": hold_back_seconds(),
        "now": now,
    }


RISKS = ("low", "medium", "high")
KIND_WORDS = {
    ReviewKind.RELEASE: "Actions to release",
    ReviewKind.HUMAN_REVIEW: "Cases to judge",
    ReviewKind.HUMAN_TASK: "Tasks",
}


def _shown(count: int) -> str:
    return f"{COUNTED}+" if count > COUNTED else str(count)


class QueuePageView(ReviewPage):
    def get(self, request: HttpRequest) -> HttpResponse:
        now = database_now()
        reader, wanted = reader_of(actor=self.actor, now=now), wanted_from(request.GET)
        context = queue_context(reader=reader, wanted=wanted, now=now, after=_after(request))
        return render(request, "review/queue.html", context)


class QueueLiveView(ReviewPage):
    """The list and the counts, for a page that is open."""

    def get(self, request: HttpRequest) -> HttpResponse:
        now = database_now()
        reader, wanted = reader_of(actor=self.actor, now=now), wanted_from(request.GET)
        context = queue_context(reader=reader, wanted=wanted, now=now, after=_after(request))
        # The entity tag is a hash of what is shown, so an unchanged queue is answered with 304 and no body.
        text = render_to_string("review/parts/list.html", context, request=request)
        etag = etag_of(text)
        return unless_known(request, etag) or live(HttpResponse(text), etag)


def _after(request: HttpRequest) -> Cursor | None:
    text = request.GET.get("after", "")
    return cursor_read(text) if text else None


class BulkView(ReviewPage):
    def get(self, request: HttpRequest) -> HttpResponse:
        """Shows what would happen to each review. Changes nothing."""
        verdict, rows = _verdict(request.GET), bulk_rows(review_ids=_ids(request.GET.getlist("id")))
        organizations = {row.organization_id for row in rows}
        codes = (
            reason_code_choices(organization_id=organizations.pop(), scope=Scope.DENIAL)
            if len(organizations) == 1
            else []
        )
        context: dict[str, Any] = {
            "verdict": verdict,
            "too_wide": bulk_widths(rows=rows),
            "cards": [review_card(actor=self.actor, review_id=row.id) for row in rows[:MOST]],
            "refusals": codes,
            "query": query_of(wanted_from(request.GET)),
        }
        return render(request, "review/bulk.html", context)

    def post(self, request: HttpRequest) -> HttpResponse:
        """Votes on all. Each item carries the digest that the preview showed, so a changed action is refused."""
        posted = request.POST
        word = read(WordForm, _without_digest(posted))
        results = review_bulk(
            actor=self.actor,
            at=timezone.now(),
            verdict=_verdict(posted),
            items=_items(posted.getlist("item")),
            reason_code=word["reason_code"],
            note=word["note"],
        )
        query = query_of(wanted_from(QueryDict(posted.get("queue", ""))))
        refused = sum(1 for result in results if result.refusal is not None)
        context = {"results": results, "refused": refused, "done": len(results) - refused, "query": query}
        return render(request, "review/bulk_done.html", context | {"verdict": _verdict(posted)})


def _verdict(values: QueryDict) -> VoteVerdict:
    known = {"approve": VoteVerdict.APPROVE, "reject": VoteVerdict.REJECT}
    verdict = known.get(values.get("verdict", ""))
    if verdict is None:
        raise InvalidInput(errors=[FieldError("/verdict", "one of: approve, reject")])
    return verdict


def _ids(texts: list[str]) -> list[UUID]:
    try:
        return [UUID(text) for text in texts[: MOST + 1]]
    except ValueError as error:
        raise InvalidInput(errors=[FieldError("/id", "is not an id")]) from error


def _items(texts: list[str]) -> list[ReviewBulkItem]:
    """Items from texts of the form `<id>:<digest>`."""
    pairs = [text.partition(":") for text in texts[: MOST + 1]]
    ids = _ids([id_ for id_, _, _ in pairs])
    return [ReviewBulkItem(id_, digest[:64]) for id_, (_, _, digest) in zip(ids, pairs, strict=True)]


def _without_digest(posted: QueryDict) -> QueryDict:
    """The form without its own digest: each item has one."""
    copied = posted.copy()
    copied["action_digest"] = "-"
    return copied
