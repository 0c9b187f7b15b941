"""The cases of a person's groups on the review pages: the queue, a case as a workbench, and what is done with it."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django import forms
from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone

from attempts.intake.services.rows import IntakeAnswer
from attempts.quarantine.models import QuarantineCase
from attempts.quarantine.selectors import (
    LATELY,
    SHOWN,
    case_sheet,
    causes,
    may_act,
    quarantine_case_get,
    quarantine_case_list,
    repeated,
)
from attempts.quarantine.services.resolve import (
    ResolutionOrder,
    quarantine_accept,
    quarantine_authorize_retry,
    quarantine_compensate,
    quarantine_hand_over,
    quarantine_link_incident,
)
from attempts.quarantine.states import InvestigatedOutcome
from attempts.reviews.web.base import ReviewPage, read
from governance.sealing.services.read_audit import read_recorded
from governance.sealing.states import ReadDoor
from reasoncodes.base.errors import DomainError, NotFound
from reasoncodes.base.trace import trace_or_new

FINDINGS = [("", ""), *((one.value, one.value) for one in InvestigatedOutcome)]


class CaseFindingForm(forms.Form):
    finding = forms.ChoiceField(choices=FINDINGS, required=False)
    evidence_ref = forms.CharField(max_length=200, required=False)


class CaseIncidentForm(forms.Form):
    incident_ref = forms.RegexField(r"^[A-Za-z0-9][A-Za-z0-9._:/#-]{0,199}$")


def case_order(request: HttpRequest, *, finding: str, evidence_ref: str) -> ResolutionOrder:
    return ResolutionOrder(
        finding=finding,
        evidence_ref=evidence_ref,
        trace=trace_or_new(),
        deployment_region=settings.DEPLOYMENT_REGION,
        base_url=request.build_absolute_uri("/").rstrip("/"),
    )


def _following(answer: IntakeAnswer) -> str:
    if answer.status >= 400:
        return "The new attempt was denied. The denial is on record, and the case stays open."
    return f"The new attempt is {answer.attempt_id}. It goes through the same checks as any other."


RESOLVING: dict[str, tuple[Callable[..., Any], Callable[[Any], str]]] = {
    "accept": (quarantine_accept, lambda _: "Accepted. The case is resolved."),
    "authorize-retry": (quarantine_authorize_retry, _following),
    "compensate": (quarantine_compensate, _following),
}


class CasesPage(ReviewPage):
    """Open cases of the person's groups; with `?all`, all that the person may see."""

    def get(self, request: HttpRequest) -> HttpResponse:
        every = "all" in request.GET
        rows = quarantine_case_list(resolved=False, mine_of=None if every else self.actor.id)
        now = timezone.now()
        found = causes(rows=quarantine_case_list(mine_of=None if every else self.actor.id), since=now - LATELY)
        shown = list(rows.select_related("organization")[: SHOWN + 1])
        context = {"cases": shown[:SHOWN], "more": len(shown) > SHOWN, "every": every, "now": now}
        return render(request, "review/cases.html", context | {"causes": repeated(found), "open_nav": "cases"})


class CasePage(ReviewPage):
    """A case as a workbench. GET changes nothing."""

    def get(self, request: HttpRequest, case_id: UUID) -> HttpResponse:
        return self.shown(request, quarantine_case_get(case_id=case_id))

    def post(self, request: HttpRequest, case_id: UUID) -> HttpResponse:
        try:
            messages.success(request, self._done(request, case_id, request.POST.get("verb", "")))
        # Shown on the case as it is now.
        except DomainError as refusal:
            return self.shown(request, quarantine_case_get(case_id=case_id), refusal=refusal)
        return HttpResponseRedirect(reverse("review:case", args=[case_id]))

    def _done(self, request: HttpRequest, case_id: UUID, verb: str) -> str:
        at = timezone.now()
        if verb == "link-incident":
            said = read(CaseIncidentForm, request.POST)
            quarantine_link_incident(actor=self.actor, at=at, case_id=case_id, **said)
            return "Linked. The case stays open until somebody resolves it."
        if verb == "hand-over":
            quarantine_hand_over(actor=self.actor, at=at, case_id=case_id)
            return "Handed over. The case is resolved; its incident decides what follows."
        if verb not in RESOLVING:
            raise NotFound
        service, words = RESOLVING[verb]
        order = case_order(request, **read(CaseFindingForm, request.POST))
        return words(service(actor=self.actor, at=at, case_id=case_id, order=order))

    def shown(self, request: HttpRequest, case: QuarantineCase, *, refusal: DomainError | None = None) -> HttpResponse:
        now = timezone.now()
        self._record_reading(case)
        context = {
            "sheet": case_sheet(case=case, now=now, reader=self.actor.id),
            "may_act": self.actor.id is not None and may_act(user_id=self.actor.id, case=case),
            "refusal": refusal,
            "zone": timezone.get_current_timezone_name(),
            "now": now,
        }
        return render(request, "review/case.html", context, status=refusal.status if refusal else 200)

    def _record_reading(self, case: QuarantineCase) -> None:
        read_recorded(
            actor=self.actor,
            organization_id=case.organization_id,
            subject_kind="attempt",
            subject_id=case.attempt_id,
            purpose="quarantine",
            at=timezone.now(),
            door=ReadDoor.CONSOLE,
        )
