"""Reviews in the console: to see what waits for whom. Reviewers decide on the review pages and through the API."""

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.decorators import display

from attempts.models import Review
from attempts.states import FULFILLING, ReviewKind, ReviewStatus
from governance.admin.base import ConsoleAdmin
from governance.admin.records import choice_filter

LABELS = {
    "requested": "warning",
    "approved": "success",
    "confirmed": "success",
    "overridden": "success",
    "rejected": "danger",
    "expired": "danger",
}


@admin.register(Review)
class ReviewAdmin(ConsoleAdmin):
    read_subject = "review"
    list_display = ["about", "kind", "status_shown", "tier", "progress", "expires_at", "claimed_by"]
    list_filter = [
        choice_filter("status", {status.value: status.value for status in ReviewStatus}),
        choice_filter("kind", {kind.value: kind.value for kind in ReviewKind}),
    ]
    search_fields = ["=id", "=attempt__id", "=origin_step", "=subject_ref"]
    search_help_text = "The id of a review, of its attempt or of its workflow step, or the reference of its case."
    ordering = ["expires_at", "id"]
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
        return rows.prefetch_related("votes")

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
