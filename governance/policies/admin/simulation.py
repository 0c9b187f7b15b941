"""Simulation in the console: streams how a draft would have decided stored requests. Writes nothing."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any
from uuid import UUID

from django import forms
from django.core.exceptions import PermissionDenied
from django.http import (
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    HttpResponseNotAllowed,
    JsonResponse,
    StreamingHttpResponse,
)
from django.shortcuts import render
from django.urls import URLPattern, path, reverse
from unfold.widgets import UnfoldAdminSelectWidget

from governance.console.admin.base import ConsoleAdmin
from governance.policies.models import Policy
from governance.policies.services import DecisionChange, DecisionTally, policy_simulate
from reasoncodes.base.errors import DomainError
from reasoncodes.base.tenancy import tenant_scope

# Changes that the page lists. The counts cover all of them.
LISTED = 200
# Without JavaScript the page computes everything before it answers, so the number is limited.
AT_ONCE = 1000
SIZES = (100, AT_ONCE, 10_000, 100_000, 1_000_000)


class SimulateForm(forms.Form):
    last = forms.TypedChoiceField(
        label="Decisions",
        coerce=int,
        choices=[(size, f"the last {size:,}") for size in SIZES],
        initial=AT_ONCE,
        widget=UnfoldAdminSelectWidget,
    )


class SimulationPages(ConsoleAdmin):
    """A page with a form. With JavaScript the answer is streamed; without it, the page simulates up to 1,000
    decisions."""

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        return [
            path("<uuid:object_id>/simulate/", view(self.simulate_view), name=self.url_name("simulate")),
            path("<uuid:object_id>/simulate/stream/", view(self.stream_view), name=self.url_name("stream")),
            *super().get_urls(),
        ]

    def page_links(self, request: HttpRequest, obj: Policy) -> list[dict[str, Any]]:
        if not self._operates(request, obj):
            return []
        return [{"title": "Simulate", "url": self.page_url("simulate", obj.id), "primary": True}]

    def simulate_view(self, request: HttpRequest, object_id: UUID) -> HttpResponse:
        policy = self._operated(request, object_id)
        form = SimulateForm(request.POST if request.method == "POST" else None, initial={"last": AT_ONCE})
        result, refusal = None, None
        if request.method == "POST" and form.is_valid():
            if form.cleaned_data["last"] > AT_ONCE:
                form.add_error("last", f"Without JavaScript, choose at most {AT_ONCE:,}.")
            else:
                try:
                    result = _simulation_collect(policy, form.cleaned_data["last"])
                except DomainError as error:
                    refusal = error
        context = {
            **self.admin_site.each_context(request),
            "title": "Simulate",
            "opts": self.opts,
            "original": policy,
            "form": form,
            "result": result,
            "refusal": refusal,
            "listed": LISTED,
            "stream_url": self.page_url("stream", policy.id),
            "decision_url": reverse("admin:governance_enforcementdecision_change", args=[UUID(int=0)]),
            "back": self.page_url("change", policy.id),
        }
        return render(request, "admin/holdpoint/simulate.html", context, status=refusal.status if refusal else 200)

    def stream_view(self, request: HttpRequest, object_id: UUID) -> HttpResponseBase:
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        policy = self._operated(request, object_id)
        form = SimulateForm(request.POST)
        if not form.is_valid():
            return JsonResponse({"detail": "Choose how many decisions to simulate.", "problems": []}, status=400)
        try:
            items = policy_simulate(policy=policy, limit=form.cleaned_data["last"])
        except DomainError as error:
            problems = [problem.as_json() for problem in error.errors]
            return JsonResponse({"detail": error.detail, "problems": problems}, status=error.status)
        response = StreamingHttpResponse(_simulation_rows(policy, items), content_type="application/x-ndjson")
        response["X-Accel-Buffering"] = "no"
        response["Cache-Control"] = "no-store"
        return response

    def _operated(self, request: HttpRequest, object_id: UUID) -> Policy:
        policy: Policy = self.object_or_404(request, object_id)
        if not self._operates(request, policy):
            raise PermissionDenied
        return policy


def _simulation_collect(policy: Policy, limit: int) -> dict[str, Any]:
    """The whole result at once."""
    changes: list[DecisionChange] = []
    tally = DecisionTally()
    # Only in the policy's own organization: another one may have a policy with the same slug.
    with tenant_scope([policy.organization_id]):
        for item in policy_simulate(policy=policy, limit=limit):
            if isinstance(item, DecisionTally):
                tally = item
            elif len(changes) < LISTED:
                changes.append(item)
    return {"tally": tally.as_json(), "changes": changes}


def _simulation_rows(policy: Policy, items: Iterator[DecisionChange | DecisionTally]) -> Iterator[bytes]:
    """The result as lines of JSON, with the first changes only."""
    listed = 0
    tally = DecisionTally()
    # The lines are sent after the view has returned, when its tenant scope has ended. Without a scope, reading raises.
    with tenant_scope([policy.organization_id]):
        for item in items:
            if isinstance(item, DecisionTally):
                tally = item
                yield _line({"type": "progress"} | item.as_json())
            elif listed < LISTED:
                listed += 1
                yield _line({"type": "change"} | asdict(item))
        yield _line({"type": "summary"} | tally.as_json())


def _line(value: dict[str, Any]) -> bytes:
    return json.dumps(value, default=str).encode() + b"\n"
