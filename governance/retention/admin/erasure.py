"""Erasure orders, the purge and legal holds in the console."""

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

from governance.console.admin.base import Act, ConsoleAdmin, console_actor
from governance.console.admin.forms import ReasonForm
from governance.console.admin.lists import BoundedPaginator
from governance.people.rules.roles import AUDIT
from governance.people.selectors.people import people_behind
from governance.retention.admin.forms import SCOPE_WORDS, HoldForm, PurgeForm
from governance.retention.models import ErasureItem, ErasureOrder, LegalHold
from governance.retention.selectors.retention import erasure_items, erasure_list, erasure_progress, legal_hold_list
from governance.retention.services.erasure import purge_order, purge_preview
from governance.retention.services.legal_hold import legal_hold_place, legal_hold_release
from governance.retention.states import HoldScope, ItemState
from reasoncodes.base.errors import DomainError

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
        """The progress, for the page's script while the order is running."""
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
        """GET shows what can be erased in each organization; only POST orders it."""
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


def _legal_hold_place_act(
    model_admin: ConsoleAdmin, request: HttpRequest, obj: None, data: dict[str, Any]
) -> HttpResponse:
    organization = data.pop("organization")
    hold = legal_hold_place(
        actor=model_admin.require_operator(request, organization.id),
        at=timezone.now(),
        organization_id=organization.id,
        **data | {"scope": HoldScope(data["scope"])},
    )
    return model_admin.done(
        request, hold, "Placed. Nothing that it covers can be erased until a second person releases it."
    )


def _legal_hold_release_act(
    model_admin: ConsoleAdmin, request: HttpRequest, obj: LegalHold, data: dict[str, Any]
) -> str:
    legal_hold_release(actor=console_actor(request), at=timezone.now(), hold_id=obj.id, **data)
    return "Released. What it covered can be erased again, by order."


@admin.register(LegalHold)
class LegalHoldAdmin(ConsoleAdmin):
    view_permission = AUDIT
    addable = True
    list_display = ["what", "target_shown", "state_shown", "reason_code", "placed_at", "released_at", "organization"]
    list_filter = ["state", "scope"]
    search_fields = ["=id", "=target", "authority_ref"]
    ordering = ["-id"]
    fields = [
        "what",
        "target_shown",
        "state_shown",
        "reason_code",
        "authority_ref",
        "note",
        "placed_by",
        "placed_at",
        "release_reason_code",
        "release_note",
        "released_by",
        "released_at",
        "organization",
    ]
    readonly_fields = fields
    list_before_template = "admin/holdpoint/legal_hold_list.html"
    add_act = Act(
        "place",
        "Place a legal hold",
        "From now on, nothing that the legal hold covers is purged or deleted. The hold does not expire: a second "
        "person has to release it.",
        _legal_hold_place_act,
        HoldForm,
    )
    acts = [
        Act(
            "release",
            "Release",
            "Ends the legal hold. The person who placed it cannot release it.",
            _legal_hold_release_act,
            ReasonForm,
            available=lambda obj: obj.state == "active",
            danger=True,
        )
    ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[LegalHold]:
        ids = console_actor(request, permission=AUDIT).organization_ids
        return legal_hold_list().filter(organization_id__in=ids)

    @admin.display(description="What it keeps")
    def what(self, obj: LegalHold) -> str:
        return SCOPE_WORDS[HoldScope(obj.scope)]

    @admin.display(description="Which")
    def target_shown(self, obj: Any) -> str:
        if obj.scope == HoldScope.PERSON:
            return obj.person or "a person (reference erased)"
        if obj.scope == HoldScope.CONTEXT:
            return obj.reference or "a context (reference erased)"
        return obj.target or "everything"

    @display(description="State", label={"active": "danger", "released": "default"})
    def state_shown(self, obj: LegalHold) -> str:
        return str(obj.state)

    @admin.display(description="Placed by")
    def placed_by(self, obj: LegalHold) -> str:
        return people_behind(commitments={obj.placed_by_ref}).get(obj.placed_by_ref, obj.placed_by_kind)

    @admin.display(description="Released by")
    def released_by(self, obj: LegalHold) -> str:
        return people_behind(commitments={obj.released_by_ref}).get(obj.released_by_ref, "–")
