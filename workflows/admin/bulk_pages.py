"""The same for many runs, from the list: choose, see what it touches, order with a reason."""

from typing import Any
from urllib.parse import urlencode

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import URLPattern, path, reverse
from django.utils import timezone

from governance.admin.base import ConsoleAdmin, console_actor
from reasoncodes.errors import DomainError
from workflows.admin.bulk_forms import MOST_IDS, ChooseForm, OrderForm
from workflows.admin.run_words import ACTION_NAMES
from workflows.models import WorkflowInstance
from workflows.services.bulk import Preview, bulk_order, targets_preview
from workflows.services.intervene import Order
from workflows.states import InterventionAction

CARRIED = ("status", "mode", "definition", "halt_reason")


class BulkPages(ConsoleAdmin):
    actions = ["bulk_selected"]

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.bulk_view)
        return [path("bulk/", view, name=self.url_name("bulk")), *super().get_urls()]

    def get_actions(self, request: HttpRequest) -> Any:
        return super().get_actions(request) if self._operates(request) else {}

    @admin.action(description="Intervene in the chosen runs")
    def bulk_selected(self, request: HttpRequest, queryset: QuerySet[WorkflowInstance]) -> HttpResponse:
        """Leads to the page that shows what would happen; it does nothing itself."""
        rows = list(queryset.order_by("id").values_list("id", "organization_id")[: MOST_IDS + 1])
        if len(rows) > MOST_IDS or len({organization for _, organization in rows}) > 1:
            messages.error(request, f"Choose at most {MOST_IDS} runs of one organization, or use a filter.")
            return HttpResponseRedirect(self.page_url("changelist"))
        chosen = {"ids": ",".join(str(id_) for id_, _ in rows), "organization": str(rows[0][1])}
        return HttpResponseRedirect(f"{self.page_url('bulk')}?{urlencode(chosen)}")

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        carried = {name: request.GET[name] for name in CARRIED if request.GET.get(name)}
        address = f"{self.page_url('bulk')}?{urlencode(carried)}" if self._operates(request) else ""
        return super().changelist_view(request, (extra_context or {}) | {"bulk_url": address})

    def bulk_view(self, request: HttpRequest) -> HttpResponse:
        """Without `action` in the address the choice; with it what would happen, and a form that is posted."""
        if not self._operates(request):
            raise PermissionDenied
        if "action" not in request.GET:
            form = ChooseForm(initial=request.GET.dict(), request=request)
            return self._page(request, {"form": form, "step": 1})
        choose = ChooseForm(request.GET, request=request)
        if not choose.is_valid():
            return self._page(request, {"form": choose, "step": 1}, status=400)
        if request.method == "GET" and not (choose.cleaned_data["ids"] or choose.cleaned_data["created_before"]):
            # What is shown is what is ordered: runs that begin in between are not among them.
            until = request.GET.dict() | {"created_before": timezone.now().isoformat()}
            return HttpResponseRedirect(f"?{urlencode(until)}")
        return self._second(request, choose)

    def _second(self, request: HttpRequest, choose: ChooseForm) -> HttpResponse:
        organization = choose.cleaned_data["organization"]
        form = OrderForm(request.POST if request.method == "POST" else None, organization_id=organization.id)
        refusal: DomainError | None = None
        if request.method == "POST" and form.is_valid():
            try:
                return self._order(request, choose, form.cleaned_data)
            except DomainError as error:
                refusal = error
        preview = None
        try:
            preview = targets_preview(at=timezone.now(), **self._chosen(choose))
        except DomainError as error:
            refusal = error
        return self._shown(request, choose, form, preview, refusal)

    @staticmethod
    def _chosen(choose: ChooseForm) -> dict[str, Any]:
        data = choose.cleaned_data
        return {
            "organization_id": data["organization"].id,
            "action": InterventionAction(data["action"]),
            "targets": choose.targets(),
        }

    def _order(self, request: HttpRequest, choose: ChooseForm, data: dict[str, Any]) -> HttpResponse:
        chosen = self._chosen(choose)
        order = Order(chosen.pop("action"), data["reason_code"], data["note"])
        bulk = bulk_order(order=order, actor=console_actor(request), at=timezone.now(), **chosen)
        messages.success(request, "Ordered. The intervention runs in the background.")
        return HttpResponseRedirect(reverse("admin:workflows_bulkintervention_change", args=[bulk.id]))

    def _shown(
        self,
        request: HttpRequest,
        choose: ChooseForm,
        form: OrderForm,
        preview: Preview | None,
        refusal: DomainError | None,
    ) -> HttpResponse:
        again = {name: value for name, value in request.GET.items() if name != "action" and value}
        context = {
            "form": form,
            "step": 2,
            "preview": preview,
            "refusal": refusal,
            "problems": refusal.errors if refusal else (),
            "organization": choose.cleaned_data["organization"],
            "words": ACTION_NAMES[choose.cleaned_data["action"]],
            "facts": choose.said(),
            "again": f"?{urlencode(again)}",
        }
        return self._page(request, context, status=refusal.status if refusal else 200)

    def _page(self, request: HttpRequest, context: dict[str, Any], *, status: int = 200) -> HttpResponse:
        shared = {**self.admin_site.each_context(request), "title": "Bulk intervention", "opts": self.opts}
        shared["back"] = self.page_url("changelist")
        shared["media"] = self.media
        return render(request, "admin/workflows/bulk_order.html", shared | context, status=status)
