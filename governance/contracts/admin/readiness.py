"""The readiness board of a contract in the console: ten areas with their documents, the owners' decisions, and the
editor for drafts."""

from dataclasses import replace
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseNotAllowed,
    HttpResponseRedirect,
    JsonResponse,
)
from django.shortcuts import render
from django.urls import URLPattern, path
from django.utils import timezone
from unfold.widgets import UnfoldAdminTextareaWidget, UnfoldAdminTextInputWidget

from governance.authorship.states import WorkKind
from governance.console.admin.base import ConsoleAdmin, console_actor
from governance.console.admin.forms import (
    NOTE_LENGTH,
    JsonTextError,
    JsonTextField,
    document_differences,
    json_parse,
    marked_lines,
)
from governance.console.selectors.pages import contract_document, readiness_history, roles_of, work_authors
from governance.contracts.models import Contract
from governance.contracts.rules.documents import AREAS, Area, validate_documents, without_retired
from governance.contracts.rules.documents import area as area_of
from governance.contracts.rules.readiness import APPROVED, AreaStatus
from governance.contracts.selectors import contract_documents, readiness_board
from governance.contracts.services.approvers import readiness_approvers
from governance.contracts.services.contracts import contract_change
from governance.contracts.services.readiness import readiness_approve_seen, readiness_decide
from governance.contracts.states import ContractState, ReadinessVerdict
from governance.people.rules.roles import VIEW
from governance.people.selectors.people import people_behind
from reasoncodes.base.actors import Actor
from reasoncodes.base.errors import DomainError


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
    """One page on which an owner approves several areas. Each is decided and recorded separately, and only if the
    document is still the one that was shown."""

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
        """Areas that a group of this person owns and has not approved."""
        if contract.state == ContractState.RETIRED:
            return []
        groups = self._groups(request, contract)
        return [row for row in rows if row.status != APPROVED and row.owner_group in groups]

    @staticmethod
    def _viewer(request: HttpRequest, contract: Contract) -> Actor:
        """The person as an actor in this one organization."""
        # Viewing is enough here: the service checks whether they own the area, and records a refusal as a violation.
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
        "differences": document_differences(area.default, row.document),
    }


NAMES = frozenset(area.name for area in AREAS)
ERASED = "a person (reference erased)"
DONE = {
    ReadinessVerdict.APPROVE: "Approved.",
    ReadinessVerdict.REJECT: "Rejected. The authors can read why.",
    ReadinessVerdict.REVOKE: "Revoked. The contract accepts no attempts from the next request on.",
}


class DecideForm(forms.Form):
    verdict = forms.ChoiceField(choices=[(verdict.value, verdict.value) for verdict in ReadinessVerdict])
    rationale = forms.CharField(
        max_length=NOTE_LENGTH,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 3, "maxlength": NOTE_LENGTH}),
        help_text=(
            "Why you decide this. Up to 280 characters. Do not enter names, patient data or secrets: Holdpoint "
            "checks the text."
        ),
    )
    evidence_ref = forms.CharField(
        required=False,
        max_length=200,
        label="Evidence reference",
        widget=UnfoldAdminTextInputWidget,
        help_text="Where to find the evidence: a document id or a link in your own system.",
    )


class DocumentForm(forms.Form):
    document = JsonTextField(label="Document (JSON)")


class ReadinessPages(MineAtOnce):
    """The pages of the board. Everybody who may see the contract sees them; owners decide, operators edit drafts."""

    def get_urls(self) -> list[URLPattern]:
        view, start = self.admin_site.admin_view, "<uuid:object_id>/readiness/"
        return [
            path(start, view(self.board_view), name=self.url_name("readiness")),
            path(f"{start}mine/", view(self.mine_view), name=self.url_name("readiness_mine")),
            path(f"{start}<slug:area>/", view(self.area_view), name=self.url_name("area")),
            path(f"{start}<slug:area>/edit/", view(self.edit_view), name=self.url_name("document")),
            path(f"{start}<slug:area>/validate/", view(self.validate_view), name=self.url_name("validate")),
            *super().get_urls(),
        ]

    def board_view(self, request: HttpRequest, object_id: UUID) -> HttpResponse:
        if request.method not in {"GET", "HEAD"}:
            return HttpResponseNotAllowed(["GET", "HEAD"])
        contract = self.object_or_404(request, object_id)
        rows = readiness_board(contract=contract)
        waiting = [row for row in rows if row.status != APPROVED]
        mine = self._mine(request, contract, rows)
        chosen = (mine or waiting or rows)[0]
        return self._board(request, contract, chosen.area, rows=rows, form=DecideForm())

    def area_view(self, request: HttpRequest, object_id: UUID, area: str) -> HttpResponse:
        contract = self._contract(request, object_id, area)
        form = DecideForm(request.POST if request.method == "POST" else None)
        if request.method != "POST" or not form.is_valid():
            return self._board(request, contract, area, form=form)
        verdict = ReadinessVerdict(form.cleaned_data.pop("verdict"))
        try:
            readiness_decide(
                actor=self._viewer(request, contract),
                at=timezone.now(),
                contract_id=contract.id,
                area=area,
                verdict=verdict,
                **form.cleaned_data,
            )
        except DomainError as refusal:
            return self._board(request, contract, area, form=form, refusal=refusal, status=refusal.status)
        messages.success(request, f"{area_of(area).title}: {DONE[verdict]}")
        return HttpResponseRedirect(self.page_url("area", contract.id, area))

    def edit_view(self, request: HttpRequest, object_id: UUID, area: str) -> HttpResponse:
        contract = self._contract(request, object_id, area)
        actor = self.require_operator(request, contract.organization_id)
        if request.method != "POST":
            stored = contract_document(contract=contract, area=area).document
            return self._editor(request, contract, area, DocumentForm(initial={"document": stored}))
        reset = "reset" in request.POST
        form = DocumentForm(request.POST)
        if not reset and not form.is_valid():
            return self._editor(request, contract, area, form)
        document = area_of(area).default if reset else form.cleaned_data["document"]
        try:
            contract_change(actor=actor, at=timezone.now(), contract_id=contract.id, documents={area: document})
        except DomainError as refusal:
            return self._editor(request, contract, area, form, refusal=refusal)
        messages.success(
            request,
            "Reset to the safe default." if reset else "Saved. You are now its author, so you cannot approve it.",
        )
        return HttpResponseRedirect(self.page_url("area", contract.id, area))

    def validate_view(self, request: HttpRequest, object_id: UUID, area: str) -> HttpResponse:
        """Live validation of the text together with the other nine documents. Saves nothing."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        contract = self._contract(request, object_id, area)
        self.require_operator(request, contract.organization_id)
        try:
            document = json_parse(request.POST.get("document", ""))
        except JsonTextError as error:
            return JsonResponse({"problems": [{"pointer": "", "rule": "json", "message": str(error)}]})
        stored = contract_documents(contract=contract)
        documents = {name: without_retired(name, row) for name, row in stored.items()} | {area: document}
        found = validate_documents(documents, effect=contract.effect)
        return JsonResponse({"problems": [{"pointer": p.pointer, "rule": p.rule, "message": p.message} for p in found]})

    # -- parts ------------------------------------------------------------------------------------------------------
    def _contract(self, request: HttpRequest, object_id: UUID, area: str) -> Contract:
        contract: Contract = self.object_or_404(request, object_id)
        if area not in NAMES:
            raise Http404
        if contract.state != ContractState.DRAFT and request.method == "GET" and request.path.endswith("/edit/"):
            raise PermissionDenied
        return contract

    def _board(
        self,
        request: HttpRequest,
        contract: Contract,
        area: str,
        *,
        form: forms.Form,
        rows: list[AreaStatus] | None = None,
        refusal: DomainError | None = None,
        status: int = 200,
    ) -> HttpResponse:
        rows = rows or readiness_board(contract=contract)
        chosen = next(row for row in rows if row.area == area)
        history = readiness_history(contract=contract, area=area)
        decisions = [row.decision for row in rows if row.decision] + list(history)
        people = people_behind(commitments={decision.decided_by_ref for decision in decisions})
        context = {
            **self.admin_site.each_context(request),
            "title": "Readiness board",
            "opts": self.opts,
            "original": contract,
            "contract": contract,
            "rows": [(row, _who(row.decision, people), self.page_url("area", contract.id, row.area)) for row in rows],
            "approved": sum(row.status == APPROVED for row in rows),
            "people": readiness_approvers(contract=contract, rows=rows),
            "chosen": chosen,
            "who": _who(chosen.decision, people),
            "history": [(decision, _who(decision, people)) for decision in history],
            "form": form,
            "refusal": refusal,
            "back": self.page_url("change", contract.pk),
            "mine": len(self._mine(request, contract, rows)),
            **self._document_context(request, contract, chosen, area_of(area)),
            **self._decide_context(request, contract, chosen),
        }
        return render(request, "admin/holdpoint/readiness.html", context, status=status)

    def _document_context(
        self, request: HttpRequest, contract: Contract, chosen: AreaStatus, area: Area
    ) -> dict[str, Any]:
        stored = contract_document(contract=contract, area=area.name)
        authors = work_authors(kind=WorkKind.DOCUMENT, subject_id=stored.id)
        return {
            "area": area,
            "stored": stored,
            "authors": list(authors.values()),
            "wrote": request.user.pk in authors,
            "lines": marked_lines(area.default, chosen.document),
            "differences": document_differences(area.default, chosen.document),
        }

    def _decide_context(self, request: HttpRequest, contract: Contract, chosen: AreaStatus) -> dict[str, Any]:
        retired = contract.state == ContractState.RETIRED
        is_owner = chosen.owner_group in self._groups(request, contract)
        draft = contract.state == ContractState.DRAFT and self._operates(request, contract)
        return {
            "may_decide": is_owner and not retired,
            "retired": retired,
            "verdicts": ["revoke"] if chosen.status == APPROVED else ["approve", "reject"],
            "edit_url": self.page_url("document", contract.id, chosen.area) if draft else "",
        }

    def _editor(
        self,
        request: HttpRequest,
        contract: Contract,
        area: str,
        form: forms.Form,
        *,
        refusal: DomainError | None = None,
    ) -> HttpResponse:
        form.fields["document"].widget.attrs["data-validate"] = self.page_url("validate", contract.id, area)
        entry = area_of(area)
        context = {
            **self.admin_site.each_context(request),
            "title": f"Edit: {entry.title}",
            "opts": self.opts,
            "original": contract,
            "area": entry,
            "form": form,
            "refusal": refusal,
            "problems": refusal.errors if refusal else (),
            "back": self.page_url("area", contract.id, area),
        }
        return render(request, "admin/holdpoint/document.html", context, status=refusal.status if refusal else 200)


def _who(decision: Any, people: dict[str, str]) -> str:
    return people.get(decision.decided_by_ref, ERASED) if decision else ""
