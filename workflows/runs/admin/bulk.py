"""Bulk orders in the console: choose, preview, order; progress, and the result for every run."""

from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.core.paginator import Page
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.shortcuts import render
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from unfold.decorators import display
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from governance.console.admin.base import ConsoleAdmin, console_actor
from governance.console.admin.forms import NOTE_LENGTH, ConsoleForm, intervention_choices
from governance.console.admin.lists import BoundedPaginator
from governance.console.selectors.pages import organization_choices
from reasoncodes.base.errors import PROBLEMS, DomainError
from reasoncodes.codes import Scope
from workflows.definitions.selectors import definition_list
from workflows.definitions.states import Mode
from workflows.runs.admin.acts import ACTION_NAMES
from workflows.runs.models import BulkIntervention, BulkItem, WorkflowInstance
from workflows.runs.selectors.bulk import Targets, bulk_items, bulk_list, bulk_progress
from workflows.runs.selectors.console import halt_reasons
from workflows.runs.services.bulk import BulkPreview, bulk_order, targets_preview
from workflows.runs.services.intervene import InterventionOrder
from workflows.runs.states import InstanceStatus, InterventionAction

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
        return ORDER_NAMES[obj.action]

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


ORDER_NAMES = ACTION_NAMES | {InterventionAction.MIGRATE.value: "Move to another version"}
ANY = ("", "any")
MOST_IDS = 90  # they go in the address, of which the web server takes 4 KiB


class ChooseForm(ConsoleForm):
    """First step, sent with GET: it changes nothing. `ids` are the runs that were ticked in the list."""

    action = forms.ChoiceField(
        choices=list(ACTION_NAMES.items()),
        widget=UnfoldAdminSelectWidget,
        label="What to do",
    )
    organization: Any = forms.ModelChoiceField(queryset=None, empty_label=None, widget=UnfoldAdminSelectWidget)
    status = forms.ChoiceField(required=False, choices=[], widget=UnfoldAdminSelectWidget)
    halt_reason = forms.ChoiceField(required=False, choices=[], widget=UnfoldAdminSelectWidget)
    definition = forms.ChoiceField(required=False, choices=[], widget=UnfoldAdminSelectWidget)
    mode = forms.ChoiceField(required=False, choices=[], widget=UnfoldAdminSelectWidget)
    created_before = forms.DateTimeField(
        required=False,
        widget=UnfoldAdminTextInputWidget,
        help_text="In UTC, for example 2026-11-16 09:30. Leave it empty to include all runs until now.",
    )
    ids = forms.CharField(required=False, widget=forms.HiddenInput, max_length=MOST_IDS * 37)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        fields: Any = self.fields
        ids = console_actor(self.request).organization_ids if self.request else ()
        fields["organization"].queryset = organization_choices(ids=ids)
        fields["status"].choices = [ANY, *((one.value, one.value.replace("_", " ")) for one in InstanceStatus)]
        fields["mode"].choices = [ANY, *((one.value, one.value.replace("_", " ")) for one in Mode)]
        fields["halt_reason"].choices = [ANY, *((code, code) for code in halt_reasons())]
        rows = definition_list().exclude(contract=None).order_by("-id")[:50]
        fields["definition"].choices = [ANY, *((str(row.id), f"{row.slug} v{row.version}") for row in rows)]
        if self.data.get("ids") or self.initial.get("ids"):
            for name in ("status", "halt_reason", "definition", "mode", "created_before"):
                del fields[name]

    def clean_ids(self) -> list[UUID]:
        try:
            return [UUID(one) for one in self.cleaned_data["ids"].split(",") if one]
        except ValueError:
            raise forms.ValidationError("Enter valid run ids.") from None

    def targets(self) -> Targets:
        data = self.cleaned_data
        if data["ids"]:
            return Targets(instance_ids=data["ids"])
        given = {name: data[name] for name in ("status", "halt_reason", "mode", "created_before")}
        given["definition_id"] = UUID(data["definition"]) if data["definition"] else None
        return Targets(filter={name: value for name, value in given.items() if value})

    def said(self) -> list[tuple[str, str]]:
        """The choice in words, for the second step."""
        if self.cleaned_data["ids"]:
            return [("Runs", f"the {len(self.cleaned_data['ids'])} that you chose")]
        names = {"status": "Status", "halt_reason": "Halted because", "mode": "Mode"}
        found = [(words, str(self.cleaned_data[name])) for name, words in names.items() if self.cleaned_data[name]]
        if until := self.cleaned_data["created_before"]:
            found.append(("Created before", f"{until:%Y-%m-%d %H:%M:%S} UTC"))
        field: Any = self.fields["definition"]
        named = dict(field.choices).get(self.cleaned_data["definition"], "")
        return [*found, ("Definition", str(named))] if self.cleaned_data["definition"] else found


class OrderForm(forms.Form):
    """Second step, posted."""

    reason_code = forms.ChoiceField(label="Reason", choices=[], widget=UnfoldAdminSelectWidget)
    note = forms.CharField(
        required=False,
        max_length=NOTE_LENGTH,
        widget=UnfoldAdminTextInputWidget,
        help_text="Up to 280 characters. Do not enter names, patient data or secrets: Holdpoint checks the text.",
    )

    def __init__(self, *args: Any, organization_id: UUID, halts: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field: Any = self.fields["reason_code"]
        field.choices = intervention_choices(organization_id, scope=Scope.HALT if halts else Scope.INTERVENTION)


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
        form = OrderForm(
            request.POST if request.method == "POST" else None,
            organization_id=organization.id,
            halts=choose.cleaned_data["action"] == InterventionAction.HALT,
        )
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
        order = InterventionOrder(chosen.pop("action"), data["reason_code"], data["note"])
        bulk = bulk_order(order=order, actor=console_actor(request), at=timezone.now(), **chosen)
        messages.success(request, "Ordered. The intervention runs in the background.")
        return HttpResponseRedirect(reverse("admin:workflows_bulkintervention_change", args=[bulk.id]))

    def _shown(
        self,
        request: HttpRequest,
        choose: ChooseForm,
        form: OrderForm,
        preview: BulkPreview | None,
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
