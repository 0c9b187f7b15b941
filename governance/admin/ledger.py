"""The ledger in the console: to read, never to change."""

import json

from django.contrib import admin
from django.utils.html import format_html
from django.utils.safestring import SafeString

from governance.admin.base import ConsoleAdmin
from governance.ledger.actions import wording
from governance.models import LedgerEntry
from governance.selectors import people_behind


@admin.register(LedgerEntry)
class LedgerEntryAdmin(ConsoleAdmin):
    list_display = ["at", "who", "what", "subject_type", "reason_code", "organization"]
    list_select_related = ["organization"]
    search_fields = ["=id", "=subject_id", "=request_id", "=trace_id"]
    search_help_text = "An id of an entry or its subject, a request id or a trace id."
    list_filter = ["actor_kind"]
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

    @admin.display(description="Who")
    def who(self, obj: LedgerEntry) -> str:
        if obj.actor_kind == "person":
            return people_behind(commitments={obj.actor_ref}).get(obj.actor_ref, "a person (reference erased)")
        return f"service {obj.actor_ref}" if obj.actor_ref else obj.actor_kind

    @admin.display(description="What")
    def what(self, obj: LedgerEntry) -> str:
        return wording(obj.action)

    @admin.display(description="Payload")
    def payload_shown(self, obj: LedgerEntry) -> SafeString:
        return format_html("<pre>{}</pre>", json.dumps(obj.payload, indent=2, sort_keys=True))

    @admin.display(description="SHA-256")
    def hash_shown(self, obj: LedgerEntry) -> SafeString:
        return format_html("<code>{}</code>", bytes(obj.sha256).hex())
