"""Faults of the record in the console: what is wrong, since when, and what to do."""

from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path
from django.utils import timezone
from django.views.decorators.http import require_POST
from unfold.decorators import display

from governance.authority.admin import waits_for_second
from governance.authority.services.changes import authority_act
from governance.console.admin.base import ConsoleAdmin, console_actor
from governance.console.admin.lists import choice_filter
from governance.integrity.models import RecordFault
from governance.integrity.selectors.standing import record_standing
from governance.people.rules.roles import AUDIT
from governance.tenancy.selectors import organization_at_home


@admin.register(RecordFault)
class RecordFaultAdmin(ConsoleAdmin):
    view_permission = AUDIT
    list_display = ["found_at", "table", "row", "what", "standing", "found_by", "organization"]
    list_select_related = ["organization", "acceptance"]
    list_filter = [choice_filter("found_by", {"clock": "clock", "command": "command", "console": "console"})]
    search_fields = ["=row", "=table"]
    search_help_text = "The id of a row, or the name of a table."
    fields = ["found_at", "table", "row", "what", "standing", "found_by", "organization"]
    readonly_fields = fields
    list_before_template = "admin/holdpoint/record_list.html"

    def get_urls(self) -> list[URLPattern]:
        accept = self.admin_site.admin_view(require_POST(self.accept_view))
        return [path("accept/", accept, name=self.url_name("accept")), *super().get_urls()]

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        standing = record_standing()
        more = {"record": standing, "age": standing.age(at=timezone.now()), "may_accept": self._operates(request)}
        return super().changelist_view(request, (extra_context or {}) | more)

    def accept_view(self, request: HttpRequest) -> HttpResponse:
        """Proposes to accept the open faults. Another person confirms it."""
        home = organization_at_home()
        if not self._operates(request) or home is None:
            raise PermissionDenied
        outcome = authority_act(
            actor=console_actor(request), at=timezone.now(), organization=home, kind="record.accept"
        )
        if outcome.applied is None:
            return waits_for_second(request, outcome)
        messages.success(request, "Accepted. Work goes on.")
        return HttpResponseRedirect(self.page_url("changelist"))

    @display(description="State", label={"open": "danger", "accepted": "success"})
    def standing(self, obj: RecordFault) -> str:
        return "accepted" if getattr(obj, "acceptance", None) is not None else "open"
