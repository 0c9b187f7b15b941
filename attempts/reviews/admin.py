"""Console pages of reviews, for reading, and of delegations, which operators can end. Reviewers decide on the review
pages, in the chat and through the API."""

from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from unfold.decorators import display

from attempts.reviews.models import Delegation, Review
from attempts.reviews.selectors.delegations import state_is
from attempts.reviews.selectors.reviews import database_now, review_matches, reviews_shown
from attempts.reviews.services.delegate import delegation_end
from attempts.reviews.states import FULFILLING, DelegationState, ReviewKind, ReviewStatus
from governance.console.admin.base import Act, ConsoleAdmin, console_actor
from governance.console.selectors.lists import by_id

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


class DelegationStateFilter(admin.SimpleListFilter):
    title = "state"
    parameter_name = "state"
    served_by_index = True

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(state.value, state.value) for state in DelegationState]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if self.value() not in set(DelegationState):
            return queryset
        return queryset.filter(state_is(DelegationState(str(self.value())), database_now()))


def _end_act(model_admin: ConsoleAdmin, request: HttpRequest, obj: Delegation, data: dict[str, Any]) -> str:
    delegation_end(actor=console_actor(request), at=timezone.now(), delegation_id=obj.id)
    return "Ended. Nobody stands in any more, from now on."


@admin.register(Delegation)
class DelegationAdmin(ConsoleAdmin):
    list_display = [
        "from_user",
        "to_user",
        "tier",
        "state_shown",
        "reason_code",
        "starts_at",
        "ends_at",
        "organization",
    ]
    list_filter = [DelegationStateFilter]
    search_fields = ["id"]
    search_help_text = "The id of a delegation."
    fields = [
        "organization",
        "tier",
        "from_user",
        "to_user",
        "state_shown",
        "reason_code",
        "created_at",
        "starts_at",
        "ends_at",
        "ended_at",
        "ended_by",
        "end_cause",
    ]
    readonly_fields = fields
    acts = [
        Act(
            "end",
            "End it",
            "Nobody stands in for this person any more, at once. Votes that were cast stay: each was the voter's own.",
            _end_act,
            available=lambda obj: obj.state_at(timezone.now()) is not DelegationState.ENDED,
            danger=True,
        )
    ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Delegation]:
        return super().get_queryset(request).select_related("from_user", "to_user", "ended_by", "organization")

    def matches(self, term: str) -> Q | None:
        return by_id(term)

    @display(description="State", label={"planned": "info", "active": "success"})
    def state_shown(self, obj: Delegation) -> str:
        return obj.state_at(timezone.now()).value
