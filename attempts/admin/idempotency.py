"""The idempotency explorer: first use, fingerprint, replays and conflicts of a key."""

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from attempts.models import IdempotencyRecord
from attempts.selectors.idempotency import key_uses
from governance.admin.base import ConsoleAdmin


@admin.register(IdempotencyRecord)
class IdempotencyRecordAdmin(ConsoleAdmin):
    list_display = ["key", "scope", "status", "first_used_at", "expires_at"]
    search_fields = ["=key", "=attempt__id"]
    search_help_text = "A key, or the id of its attempt."
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
        return super().get_queryset(request).select_related("attempt", "organization")

    @admin.display(description="Replays")
    def replays(self, obj: IdempotencyRecord) -> int:
        return key_uses(record=obj)["replays"]

    @admin.display(description="Conflicts")
    def conflicts(self, obj: IdempotencyRecord) -> int:
        return key_uses(record=obj)["conflicts"]
