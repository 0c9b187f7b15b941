"""An owner of several areas reads their documents on one page and approves them with one rationale."""

from dataclasses import replace
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.utils import timezone
from unfold.widgets import UnfoldAdminTextareaWidget

from governance.admin.base import ConsoleAdmin, console_actor
from governance.admin.forms import NOTE_LENGTH
from governance.admin.json_text import differences, marked_lines
from governance.documents import area as area_of
from governance.models import Contract
from governance.readiness import APPROVED, AreaStatus
from governance.roles import VIEW
from governance.selectors import readiness_board
from governance.selectors.console import roles_of
from governance.services.readiness import readiness_approve_seen
from governance.states import ContractState
from reasoncodes.actors import Actor
from reasoncodes.errors import DomainError


class MineForm(forms.Form):
    rationale = forms.CharField(
        max_length=NOTE_LENGTH,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 3, "maxlength": NOTE_LENGTH}),
        help_text=(
            "Why you approve. The text is stored with each area. Up to 280 characters. Do not enter names, patient "
            "data or secrets: Holdpoint checks the text."
        ),
    )


class MineAtOnce(ConsoleAdmin):
    """Each area is decided and recorded by itself; what was read is what is approved."""

    def mine_view(self, request: HttpRequest, object_id: UUID) -> HttpResponse:
        contract: Contract = self.object_or_404(request, object_id)
        mine = self._mine(request, contract, readiness_board(contract=contract))
        if not mine:
            raise PermissionDenied
        form = MineForm(request.POST if request.method == "POST" else None)
        refusal: DomainError | None = None
        if request.method == "POST" and form.is_valid():
            try:
                return self._approve(request, contract, mine, form.cleaned_data["rationale"])
            except DomainError as error:
                refusal = error
        context = {
            **self.admin_site.each_context(request),
            "title": "My areas",
            "opts": self.opts,
            "original": contract,
            "form": form,
            "refusal": refusal,
            "problems": refusal.errors if refusal else (),
            "areas": [_shown(row) for row in mine],
            "back": self.page_url("readiness", contract.pk),
        }
        return render(
            request, "admin/holdpoint/readiness_mine.html", context, status=refusal.status if refusal else 200
        )

    def _approve(
        self, request: HttpRequest, contract: Contract, mine: list[AreaStatus], rationale: str
    ) -> HttpResponse:
        named = {row.area for row in mine}
        seen = {area: sha256 for area in named if (sha256 := request.POST.get(f"seen_{area}", ""))}
        found = readiness_approve_seen(
            actor=self._viewer(request, contract),
            at=timezone.now(),
            contract_id=contract.id,
            seen=seen,
            rationale=rationale,
        )
        refused = {area: why for area, why in found.items() if why}
        if len(found) > len(refused):
            messages.success(request, f"Approved: {len(found) - len(refused)} of {len(found)} areas.")
        for area, why in refused.items():
            messages.error(request, f"{area_of(area).title}: {why}")
        return HttpResponseRedirect(self.page_url("readiness", contract.pk))

    def _mine(self, request: HttpRequest, contract: Contract, rows: list[AreaStatus]) -> list[AreaStatus]:
        """Areas that wait for a group of this person's."""
        if contract.state == ContractState.RETIRED:
            return []
        groups = self._groups(request, contract)
        return [row for row in rows if row.status != APPROVED and row.owner_group in groups]

    @staticmethod
    def _viewer(request: HttpRequest, contract: Contract) -> Actor:
        """Acting in this one organization. Whether they own the area, the service finds out and records."""
        actor = console_actor(request, permission=VIEW)
        return replace(actor, organization_ids=actor.organization_ids & {contract.organization_id})

    @staticmethod
    def _groups(request: HttpRequest, contract: Contract) -> frozenset[str]:
        user: Any = request.user
        roles = roles_of(user_id=user.pk).get(contract.organization_id, frozenset())
        return frozenset(role.removeprefix("owner:") for role in roles if role.startswith("owner:"))


def _shown(row: AreaStatus) -> dict[str, Any]:
    area = area_of(row.area)
    return {
        "row": row,
        "area": area,
        "lines": marked_lines(area.default, row.document),
        "differences": differences(area.default, row.document),
    }
