"""Erasure in the console: what retention no longer demands, the order to purge it, and what came of each item."""

from typing import Any
from uuid import UUID

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.core.paginator import Page
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.shortcuts import render
from django.urls import URLPattern, path
from django.utils import timezone
from unfold.decorators import display

from governance.admin.base import ConsoleAdmin, console_actor
from governance.admin.lists import BoundedPaginator
from governance.admin.retention_forms import PurgeForm
from governance.models import ErasureItem, ErasureOrder
from governance.roles import AUDIT
from governance.selectors.retention import erasure_items, erasure_list, erasure_progress
from governance.services.purge import purge_order, purge_preview
from governance.states import ItemState
from reasoncodes.errors import DomainError

PER_PAGE = 50
KINDS = {"purge": "Purge: retention is over", "deletion": "Deletion: somebody asked for it"}
PAGES = {
    "attempt": "attempts_attempt",
    "run": "workflows_workflowinstance",
    "event": "workflows_workflowevent",
    "person": "governance_user",
}


@admin.register(ErasureOrder)
class ErasureOrderAdmin(ConsoleAdmin):
    view_permission = AUDIT
    list_display = ["what", "state_shown", "reason_code", "who", "created_at", "finished_at", "organization"]
    list_filter = ["kind"]
    search_fields = ["=id", "=items__subject_id"]
    ordering = ["-id"]
    fields = ["what", "state_shown", "reason_code", "note", "who", "organization", "created_at", "finished_at"]
    readonly_fields = fields
    list_before_template = "admin/holdpoint/erasure_list.html"
    change_form_outer_after_template = "admin/holdpoint/erasure.html"

    def get_urls(self) -> list[URLPattern]:
        progress = self.admin_site.admin_view(self.progress_view)
        purge = self.admin_site.admin_view(self.purge_view)
        return [
            path("purge/", purge, name=self.url_name("purge")),
            path("<uuid:object_id>/progress/", progress, name=self.url_name("progress")),
            *super().get_urls(),
        ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[ErasureOrder]:
        return erasure_list().filter(organization_id__in=console_actor(request, permission=AUDIT).organization_ids)

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        address = self.page_url("purge") if self._operates(request) else ""
        return super().changelist_view(request, (extra_context or {}) | {"purge_url": address})

    @admin.display(description="What")
    def what(self, obj: ErasureOrder) -> str:
        return KINDS[obj.kind]

    @display(description="State", label={"finished": "success", "under way": "info"})
    def state_shown(self, obj: ErasureOrder) -> str:
        return "finished" if obj.finished_at else "under way"

    @admin.display(description="Ordered by")
    def who(self, obj: Any) -> str:
        return obj.orderer_name or "a person (reference erased)"

    def progress_view(self, request: HttpRequest, object_id: UUID) -> HttpResponse:
        """What the page's script asks for while it is under way."""
        order = self.object_or_404(request, object_id)
        found = erasure_progress(order_id=order.id)
        numbers = {name: getattr(found, name) for name in ("total", "done", "refused", "waiting")}
        return JsonResponse(numbers | {"finished": order.finished_at is not None})

    def page_context(self, request: HttpRequest, obj: ErasureOrder) -> dict[str, Any]:
        state = request.GET.get("items")
        state = state if state in set(ItemState) else None
        rows = erasure_items(order_id=obj.id, state=state)
        page: Page[ErasureItem] = BoundedPaginator(rows, PER_PAGE).get_page(request.GET.get("page"))
        progress = erasure_progress(order_id=obj.id)
        return {
            "progress": progress,
            "ended": progress.done + progress.refused,
            "progress_url": self.page_url("progress", obj.pk),
            "items": [(item, f"admin:{PAGES[item.kind]}_change") for item in page],
            "items_page": page,
            "items_state": state or "",
            "states": [one.value for one in ItemState],
        }

    def purge_view(self, request: HttpRequest) -> HttpResponse:
        """GET shows what is over in each organization; only POST orders."""
        if not self._operates(request):
            raise PermissionDenied
        actor, refusal = console_actor(request), None
        form = PurgeForm(request.POST if request.method == "POST" else None, request=request)
        if request.method == "POST" and form.is_valid():
            data = form.cleaned_data
            try:
                order = purge_order(
                    actor=actor,
                    at=timezone.now(),
                    organization_id=data["organization"].id,
                    reason_code=data["reason_code"],
                    note=data["note"],
                )
            except DomainError as error:
                refusal = error
                form.add_error(None, error.detail)
            else:
                messages.success(request, "Ordered. The erasure runs in the background.")
                return HttpResponseRedirect(self.page_url("change", order.id))
        context = {
            **self.admin_site.each_context(request),
            "title": "Purge",
            "opts": self.opts,
            "back": self.page_url("changelist"),
            "previews": purge_preview(actor=actor, at=timezone.now()),
            "form": form,
            "problems": refusal.errors if refusal else (),
        }
        return render(request, "admin/holdpoint/purge.html", context, status=refusal.status if refusal else 200)
