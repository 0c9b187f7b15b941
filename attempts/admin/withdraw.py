"""Withdrawing several attempts from the list: see what would happen to each, say why, see what did."""

from typing import Any
from uuid import UUID

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import URLPattern, path
from django.utils import timezone

from attempts.models import Attempt
from attempts.services.attempt_cancel import AT_ONCE, attempts_cancel, attempts_preview
from governance.admin.base import ConsoleAdmin, console_actor
from governance.admin.forms import ReasonForm
from governance.selectors.lists import uuid_or_none
from reasoncodes.errors import DomainError


class WithdrawPages(ConsoleAdmin):
    actions = ["withdraw_selected"]

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.withdraw_view)
        return [path("withdraw/", view, name=self.url_name("withdraw")), *super().get_urls()]

    def get_actions(self, request: HttpRequest) -> Any:
        return super().get_actions(request) if self._operates(request) else {}

    @admin.action(description="Withdraw the chosen attempts")
    def withdraw_selected(self, request: HttpRequest, queryset: QuerySet[Attempt]) -> HttpResponse:
        """Leads to the page that shows what would happen; it does nothing itself."""
        ids = [str(row.pk) for row in queryset[: AT_ONCE + 1]]
        if len(ids) > AT_ONCE:
            messages.error(request, f"Choose at most {AT_ONCE} attempts.")
            return HttpResponseRedirect(self.page_url("changelist"))
        return HttpResponseRedirect(f"{self.page_url('withdraw')}?ids={','.join(ids)}")

    def withdraw_view(self, request: HttpRequest) -> HttpResponse:
        if not self._operates(request):
            raise PermissionDenied
        ids = [id_ for one in request.GET.get("ids", "").split(",") if (id_ := uuid_or_none(one))]
        preview = attempts_preview(attempt_ids=ids)
        if len({one.attempt.organization_id for one in preview}) != 1:
            messages.error(request, "Choose attempts of one organization.")
            return HttpResponseRedirect(self.page_url("changelist"))
        first = preview[0].attempt
        self.require_operator(request, first.organization_id)
        form = ReasonForm(request.POST if request.method == "POST" else None, obj=first, request=request)
        if request.method == "POST" and form.is_valid():
            try:
                return self._done(request, ids, form.cleaned_data)
            except DomainError as refusal:
                form.add_error(None, " ".join([refusal.detail, *(one.message for one in refusal.errors)]))
        possible = sum(not one.refusal for one in preview)
        return self._page(request, {"form": form, "items": preview, "possible": possible, "step": "preview"})

    def _done(self, request: HttpRequest, ids: list[UUID], data: dict[str, Any]) -> HttpResponse:
        results = attempts_cancel(actor=console_actor(request), at=timezone.now(), attempt_ids=ids, **data)
        done = sum(not one.refusal for one in results)
        return self._page(request, {"items": results, "done": done, "step": "done"})

    def _page(self, request: HttpRequest, context: dict[str, Any]) -> HttpResponse:
        shared = {**self.admin_site.each_context(request), "title": "Withdraw attempts", "opts": self.opts}
        shared["back"] = self.page_url("changelist")
        return render(request, "admin/holdpoint/withdraw.html", shared | context)
