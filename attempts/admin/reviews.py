"""Reviews in the console: to see what waits for whom. Reviewers decide through the API and, later, the review pages."""

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.decorators import display

from attempts.models import Review
from attempts.states import ReviewStatus
from governance.admin.base import ConsoleAdmin
from governance.admin.records import choice_filter

LABELS = {"requested": "warning", "approved": "success", "rejected": "danger", "expired": "danger"}


@admin.register(Review)
class ReviewAdmin(ConsoleAdmin):
    list_display = ["attempt", "status_shown", "tier", "progress", "expires_at", "claimed_by"]
    list_filter = [choice_filter("status", {status.value: status.value for status in ReviewStatus})]
    search_fields = ["=id", "=attempt__id"]
    search_help_text = "The id of a review or of its attempt."
    ordering = ["expires_at", "id"]
    fields = [
        "attempt",
        "status_shown",
        "tier",
        "progress",
        "action_digest",
        "requested_at",
        "expires_at",
        "claimed_by",
        "claimed_until",
        "decided_at",
    ]
    readonly_fields = fields

    def get_queryset(self, request: HttpRequest) -> QuerySet[Review]:
        rows = super().get_queryset(request).select_related("attempt", "claimed_by", "organization")
        return rows.prefetch_related("votes")

    @display(description="Status", label=LABELS)
    def status_shown(self, obj: Review) -> str:
        return obj.status

    @admin.display(description="Approvals")
    def progress(self, obj: Review) -> str:
        approvals = sum(1 for vote in obj.votes.all() if vote.verdict == "approve")
        return f"{approvals} of {obj.approvals_required}"
