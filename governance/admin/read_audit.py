"""The read audit in the console: who opened what, newest first; to read, never to change."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from governance.admin.base import ConsoleAdmin, console_actor
from governance.admin.lists import choice_filter
from governance.models import ReadAccess
from governance.roles import AUDIT
from governance.selectors.choices import with_names

KINDS = {kind: kind for kind in ("attempt", "review", "evidence_bundle", "export")}


@admin.register(ReadAccess)
class ReadAccessAdmin(ConsoleAdmin):
    view_permission = AUDIT
    list_display = ["at", "who", "subject_kind", "subject_id", "door", "purpose", "organization"]
    list_select_related = ["organization"]
    list_filter = [choice_filter("subject_kind", KINDS), choice_filter("door", {"api": "API", "console": "console"})]
    search_fields = ["=subject_id", "=request_id", "=actor_ref"]
    search_help_text = "The id of the opened record, of a request or of a service, or a person's reference."
    fields = ["at", "who", "subject_kind", "subject_id", "door", "purpose", "request_id", "organization"]
    readonly_fields = fields

    def get_queryset(self, request: HttpRequest) -> QuerySet[ReadAccess]:
        rows = super().get_queryset(request)
        if not request.user.is_superuser:
            rows = rows.filter(organization__in=console_actor(request, permission=AUDIT).organization_ids)
        return with_names(rows=rows)

    @admin.display(description="Who")
    def who(self, obj: Any) -> str:
        if obj.actor_kind == "person":
            return obj.username or "a person (reference erased)"
        return f"service {obj.actor_ref}" if obj.actor_ref else obj.actor_kind
