"""Console pages of idempotency keys: first use, fingerprint, replays and conflicts."""

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest

from attempts.intake.models import IdempotencyRecord
from attempts.intake.selectors import key_uses
from attempts.lifecycle.selectors.attempts import record_matches
from governance.console.admin.base import ConsoleAdmin


@admin.register(IdempotencyRecord)
class IdempotencyRecordAdmin(ConsoleAdmin):
    list_display = ["key", "scope", "status", "first_used_at", "expires_at"]
    hot = True
    search_fields = ["key"]
    search_help_text = "A full key, or the id of its attempt."
    list_before_template = "admin/holdpoint/key_list.html"
    ordering = ["-id"]
    fields = [
        "key",
        "scope",
        "fingerprint",
        "attempt",
        "status",
        "first_used_at",
        "expires_at",
        "generation",
        "replays",
        "conflicts",
    ]
    readonly_fields = fields

    def get_queryset(self, request: HttpRequest) -> QuerySet[IdempotencyRecord]:
        rows = super().get_queryset(request).select_related("attempt", "organization")
        if not self.is_list(request):
            return rows
        # No index gives an organization's newest keys, and none is worth its price: keys are looked up, not browsed.
        return rows.defer("body", "parts") if request.GET.get("q", "").strip() else rows.none()

    def matches(self, term: str) -> Q | None:
        return record_matches(term)

    @admin.display(description="Replays")
    def replays(self, obj: IdempotencyRecord) -> int:
        return key_uses(record=obj)["replays"]

    @admin.display(description="Conflicts")
    def conflicts(self, obj: IdempotencyRecord) -> int:
        return key_uses(record=obj)["conflicts"]
