"""Violations in the console, read-only."""

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest

from governance.console.admin.base import ConsoleAdmin, console_actor
from governance.console.admin.lists import choice_filter
from governance.console.selectors.lists import by_id
from governance.people.rules.roles import AUDIT
from governance.people.selectors.people import people_behind
from governance.violations.models import GovernanceViolation
from governance.violations.states import ViolationKind


@admin.register(GovernanceViolation)
class GovernanceViolationAdmin(ConsoleAdmin):
    """For operators and auditors. Other people do not see that their violations were recorded."""

    view_permission = AUDIT
    list_display = ["at", "kind", "detail", "actor_kind", "subject_type", "organization"]
    list_select_related = ["organization"]
    list_filter = [
        choice_filter("kind", {kind.value: kind.value.replace("_", " ") for kind in ViolationKind}, indexed=False)
    ]
    hot = True
    search_fields = ["id"]
    search_help_text = "The id of a violation."
    fields = ["at", "kind", "detail", "who", "subject_type", "subject_id", "organization"]
    readonly_fields = fields

    def get_queryset(self, request: HttpRequest) -> QuerySet[GovernanceViolation]:
        rows = super().get_queryset(request).select_related("organization")
        if request.user.is_superuser:
            return rows
        return rows.filter(organization_id__in=console_actor(request, permission=AUDIT).organization_ids)

    def matches(self, term: str) -> Q | None:
        return by_id(term)

    @admin.display(description="Who")
    def who(self, obj: GovernanceViolation) -> str:
        if obj.actor_kind == "person":
            return people_behind(commitments={obj.actor_ref}).get(obj.actor_ref, "a person (reference erased)")
        return f"{obj.actor_kind} {obj.actor_ref}".strip()
