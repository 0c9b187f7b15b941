"""Orders for many runs in the console: how far each is, and what came of every run."""

from typing import Any
from uuid import UUID

from django.contrib import admin
from django.core.paginator import Page
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import URLPattern, path
from unfold.decorators import display

from governance.admin.base import ConsoleAdmin
from governance.admin.lists import BoundedPaginator
from reasoncodes.errors import PROBLEMS
from workflows.admin.run_words import ACTION_NAMES
from workflows.models import BulkIntervention, BulkItem
from workflows.selectors.bulk import bulk_items, bulk_list, bulk_progress

PER_PAGE = 50
STATUSES = ("waiting", "done", "refused")


@admin.register(BulkIntervention)
class BulkInterventionAdmin(ConsoleAdmin):
    list_display = ["what", "state_shown", "reason_code", "who", "created_at", "finished_at", "organization"]
    ordering = ["-id"]
    fields = ["what", "state_shown", "reason_code", "note", "who", "organization", "created_at", "finished_at"]
    readonly_fields = fields
    list_before_template = "admin/workflows/bulk_list.html"
    change_form_outer_after_template = "admin/workflows/bulk.html"

    class Media:
        css = {"all": ["workflows/runs.css"]}

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.progress_view)
        return [path("<uuid:object_id>/progress/", view, name=self.url_name("progress")), *super().get_urls()]

    def get_queryset(self, request: HttpRequest) -> QuerySet[BulkIntervention]:
        return bulk_list()

    @admin.display(description="What")
    def what(self, obj: BulkIntervention) -> str:
        return ACTION_NAMES[obj.action]

    @display(description="State", label={"finished": "success", "under way": "info"})
    def state_shown(self, obj: BulkIntervention) -> str:
        return "finished" if obj.finished_at else "under way"

    @admin.display(description="Ordered by")
    def who(self, obj: Any) -> str:
        return str(obj.orderer_name)

    def progress_view(self, request: HttpRequest, object_id: UUID) -> HttpResponse:
        """What the page's script asks for while it is under way."""
        bulk = self.object_or_404(request, object_id)
        found = bulk_progress(bulk_id=bulk.id)
        return JsonResponse(
            {
                "total": found.total,
                "done": found.done,
                "refused": found.refused,
                "waiting": found.waiting,
                "finished": bulk.finished_at is not None,
            }
        )

    def page_context(self, request: HttpRequest, obj: BulkIntervention) -> dict[str, Any]:
        status = request.GET.get("items")
        status = status if status in STATUSES else None
        rows = bulk_items(bulk_id=obj.id, status=status)
        page: Page[BulkItem] = BoundedPaginator(rows, PER_PAGE).get_page(request.GET.get("page"))
        progress = bulk_progress(bulk_id=obj.id)
        return {
            "progress": progress,
            "ended": progress.done + progress.refused,
            "progress_url": self.page_url("progress", obj.pk),
            "items": [(item, _problem(item.problem)) for item in page],
            "items_page": page,
            "items_status": status or "",
            "statuses": STATUSES,
        }


def _problem(code: str) -> str:
    """The problem's title, as its help page has it."""
    known = PROBLEMS.get(code)
    return known.title if known else code
