"""The ledger in the console, read-only."""

import json
from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString

from governance.console.admin.base import ConsoleAdmin, console_actor
from governance.console.admin.lists import choice_filter
from governance.console.selectors.lists import by_id
from governance.console.selectors.pages import with_names
from governance.ledger.models import LedgerEntry
from governance.ledger.rules.actions import wording
from governance.people.rules.roles import AUDIT
from reasoncodes.base.actors import ActorKind


@admin.register(LedgerEntry)
class LedgerEntryAdmin(ConsoleAdmin):
    list_display = ["at", "who", "what", "subject_type", "reason_code", "organization"]
    list_select_related = ["organization"]
    hot = True
    search_fields = ["id"]
    search_help_text = "The id of an entry or of its subject."
    list_filter = [choice_filter("actor_kind", {kind.value: kind.value for kind in ActorKind}, indexed=False)]
    fields = [
        "at",
        "who",
        "what",
        "action",
        "organization",
        "subject_type",
        "subject_id",
        "reason_code",
        "request_id",
        "trace_id",
        "payload_shown",
        "hash_shown",
    ]
    readonly_fields = fields

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Reading the ledger needs the auditor's permission, here as in the API."""
        actor = console_actor(request, permission=AUDIT)
        if obj is None:
            return bool(actor.organization_ids) or request.user.is_superuser
        return obj.organization_id in actor.organization_ids or request.user.is_superuser

    def get_queryset(self, request: HttpRequest) -> QuerySet[LedgerEntry]:
        rows = super().get_queryset(request)
        if not request.user.is_superuser:
            rows = rows.filter(organization__in=console_actor(request, permission=AUDIT).organization_ids)
        return with_names(rows=rows)

    def matches(self, term: str) -> Q | None:
        return by_id(term, "id", "subject_id")

    @admin.display(description="Who")
    def who(self, obj: Any) -> str:
        if obj.actor_kind == "person":
            return obj.username or "a person (reference erased)"
        return f"service {obj.actor_ref}" if obj.actor_ref else obj.actor_kind

    @admin.display(description="What")
    def what(self, obj: LedgerEntry) -> str:
        return "; ".join(wording(move.action) for move in obj.moves)

    @admin.display(description="Payload")
    def payload_shown(self, obj: LedgerEntry) -> SafeString:
        if obj.payload is None:
            return format_html("<em>{}</em>", "Erased by order. Its salted hash is still part of the entry's hash.")
        return format_html("<pre>{}</pre>", json.dumps(obj.payload, indent=2, sort_keys=True))

    @admin.display(description="SHA-256")
    def hash_shown(self, obj: LedgerEntry) -> SafeString:
        return format_html("<code>{}</code>", bytes(obj.sha256).hex())
