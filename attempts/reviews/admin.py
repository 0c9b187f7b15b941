"""Console pages of reviews, for reading. Reviewers decide on the review pages, in the chat and through the API."""

from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from unfold.decorators import display

from attempts.reviews.models import Review
from attempts.reviews.selectors.reviews import review_matches, reviews_shown
from attempts.reviews.states import FULFILLING, ReviewKind, ReviewStatus
from governance.console.admin.base import ConsoleAdmin

LABELS = {
    "requested": "warning",
    "approved": "success",
    "confirmed": "success",
    "overridden": "success",
    "rejected": "danger",
    "expired": "danger",
}


class ReviewStatusFilter(admin.SimpleListFilter):
    """Without a choice, open reviews are shown."""

    title = "status"
    parameter_name = "status"
    served_by_index = True

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(status.value, status.value) for status in ReviewStatus]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset


class KindFilter(ReviewStatusFilter):
    title = "kind of open review"
    parameter_name = "kind"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(kind.value, kind.value.replace("_", " ")) for kind in ReviewKind]


@admin.register(Review)
class ReviewAdmin(ConsoleAdmin):
    read_subject = "review"
    list_display = ["about", "kind", "status_shown", "tier", "progress", "expires_at", "claimed_by"]
    list_filter = [ReviewStatusFilter, KindFilter]
    hot = True
    search_fields = ["id"]
    search_help_text = "The id of a review, its attempt, or the workflow step that waits for it."
    fields = [
        "kind",
        "attempt",
        "label",
        "subject_ref",
        "origin_step",
        "status_shown",
        "tier",
        "progress",
        "action_digest",
        "requested_at",
        "expires_at",
        "claimed_by",
        "claimed_until",
        "requeues",
        "decided_at",
    ]
    readonly_fields = fields

    def get_queryset(self, request: HttpRequest) -> QuerySet[Review]:
        rows = super().get_queryset(request).select_related("attempt", "claimed_by", "organization")
        rows = rows.prefetch_related("votes")
        if not self.is_list(request) or request.GET.get("q"):
            return rows
        return reviews_shown(rows=rows, status=request.GET.get("status", ""), kind=request.GET.get("kind", ""))

    def get_ordering(self, request: HttpRequest) -> list[str]:
        """Open reviews by deadline, ended ones newest first: each order is that of an index."""
        ended = request.GET.get("status", ReviewStatus.REQUESTED) != ReviewStatus.REQUESTED
        return ["-id"] if ended else ["expires_at", "id"]

    def matches(self, term: str) -> Q | None:
        return review_matches(term)

    @admin.display(description="About")
    def about(self, obj: Review) -> str:
        return str(obj.attempt) if obj.attempt is not None else f"{obj.label or 'Human review'} {obj.subject_ref}"

    @display(description="Status", label=LABELS)
    def status_shown(self, obj: Review) -> str:
        return obj.status

    @admin.display(description="Approvals")
    def progress(self, obj: Review) -> str:
        approvals = sum(1 for vote in obj.votes.all() if vote.verdict in FULFILLING)
        asked = " and ".join(f"{part['approvals_required']} {part['tier']}" for part in obj.parts)
        return f"{approvals} of {obj.approvals_required} ({asked})"
