"""Many at once: a preview that says what would happen, then one POST and a result for each."""

from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.utils import timezone

from attempts.selectors.review_bulk import MOST, bulk_rows, bulk_widths
from attempts.selectors.review_card import review_card
from attempts.services.review_bulk import BulkItem, review_bulk
from attempts.states import VoteVerdict
from attempts.web.base import ReviewPage
from attempts.web.forms import WordForm, read
from attempts.web.queue import query_of, wanted_from
from reasoncodes.codes import Scope
from reasoncodes.errors import FieldError, InvalidInput
from reasoncodes.selectors import reason_code_choices


class BulkView(ReviewPage):
    def get(self, request: HttpRequest) -> HttpResponse:
        """What would happen to each; nothing happens."""
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
        """Each item carries the digest of what the preview showed."""
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


def _items(texts: list[str]) -> list[BulkItem]:
    """`<id>:<digest>` each."""
    pairs = [text.partition(":") for text in texts[: MOST + 1]]
    ids = _ids([id_ for id_, _, _ in pairs])
    return [BulkItem(id_, digest[:64]) for id_, (_, _, digest) in zip(ids, pairs, strict=True)]


def _without_digest(posted: QueryDict) -> QueryDict:
    """One word for all; the digests are the items' own."""
    copied = posted.copy()
    copied["action_digest"] = "-"
    return copied
