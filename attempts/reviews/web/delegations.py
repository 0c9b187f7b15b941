"""The page of a person's own delegations: given and received, a new one, and the end of one."""

from datetime import datetime
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone

from attempts.reviews.models import LONGEST
from attempts.reviews.selectors.delegations import TierToDelegate, own_delegations, tiers_to_delegate
from attempts.reviews.selectors.reviews import database_now
from attempts.reviews.services.delegate import AWAY, Cover, delegation_create, delegation_end
from attempts.reviews.web.base import ReviewPage
from governance.people.selectors.people import organization_of
from governance.tenancy.models import Organization
from governance.violations.services import violations_recorded
from reasoncodes.base.actors import Actor
from reasoncodes.base.errors import DomainError, FieldError, InvalidInput
from reasoncodes.codes import Scope
from reasoncodes.models import ReasonCode
from reasoncodes.selectors import reason_code_choices


class DelegationForm(forms.Form):
    to = forms.RegexField(r"^[0-9a-f-]{36}\|[^|]{1,63}\|.{1,150}$", error_messages={"invalid": "Choose from the list."})
    reason_code = forms.CharField(max_length=64)
    starts_at = forms.DateTimeField(required=False)
    ends_at = forms.DateTimeField()


class DelegationsPage(ReviewPage):
    def get(self, request: HttpRequest) -> HttpResponse:
        return self.shown(request, DelegationForm(initial={"reason_code": AWAY}))

    def post(self, request: HttpRequest) -> HttpResponse:
        form = DelegationForm(request.POST)
        if not form.is_valid():
            return self.shown(request, form, status=400)
        data = form.cleaned_data
        org_id, tier, username = data.pop("to").split("|", 2)
        try:
            organization = _organization(actor=self.actor, at=timezone.now(), org_id=_uuid(org_id))
            cover = Cover(tier=tier, to_username=username, **data)
            made = delegation_create(actor=self.actor, at=timezone.now(), organization=organization, cover=cover)
        # Shown beside the form, so that what the person entered is not lost.
        except DomainError as refusal:
            form.add_error(None, " ".join([refusal.detail, *(problem.message for problem in refusal.errors)]))
            return self.shown(request, form, status=refusal.status)
        messages.success(request, f"Delegated. {made.to_user.username} stands in for you.")
        return HttpResponseRedirect(reverse("review:delegations"))

    def shown(self, request: HttpRequest, form: forms.Form, *, status: int = 200) -> HttpResponse:
        user: Any = request.user
        now = database_now()
        tiers = tiers_to_delegate(person=user.id, organization_ids=self.actor.organization_ids)
        context = {
            "own": own_delegations(person=user.id, now=now, before=_before(request)),
            "tiers": tiers,
            "reasons": _reasons(tiers),
            "form": form,
            "longest_days": LONGEST.days,
            "zone": timezone.get_current_timezone_name(),
            "now": now,
        }
        return render(request, "review/delegations.html", context, status=status)


class DelegationEndView(ReviewPage):
    http_method_names = ["post"]

    def post(self, request: HttpRequest, delegation_id: UUID) -> HttpResponse:
        delegation_end(actor=self.actor, at=timezone.now(), delegation_id=delegation_id)
        messages.success(request, "Ended.")
        return HttpResponseRedirect(reverse("review:delegations"))


@violations_recorded
def _organization(*, actor: Actor, at: datetime, org_id: UUID) -> Organization:
    """The organization of the choice. A forged one of others is put on record, as at every door."""
    return organization_of(actor=actor, org_id=org_id)


def _reasons(tiers: list[TierToDelegate]) -> list[ReasonCode]:
    """The codes of all organizations of the person, each once. Codes that need a note are left out: there is none."""
    found: dict[str, ReasonCode] = {}
    for organization_id in dict.fromkeys(one.organization.id for one in tiers):
        for code in reason_code_choices(organization_id=organization_id, scope=Scope.DELEGATION):
            if not code.requires_note:
                found.setdefault(code.code, code)
    return list(found.values())


def _before(request: HttpRequest) -> UUID | None:
    text = request.GET.get("before", "")
    return _uuid(text) if text else None


def _uuid(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError as error:
        raise InvalidInput(errors=[FieldError("/id", "is not an id")]) from error
