"""The base of the review pages: sign-in and scope, refusals as pages, time zones, entity tags, and the forms."""

from hashlib import sha256
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django import forms
from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseNotModified, QueryDict
from django.shortcuts import render
from django.utils import timezone
from django.views import View

from attempts.reviews.services.delegate import LONGEST_HOURS
from governance.people.rules.roles import VIEW
from governance.people.selectors.people import person_actor
from reasoncodes.base.actors import Actor
from reasoncodes.base.errors import DomainError, FieldError, InvalidInput
from reasoncodes.base.tenancy import enter_scope


def is_htmx(request: HttpRequest) -> bool:
    """Whether htmx or our own script asks, which wants only a part of the page."""
    return request.headers.get("HX-Request") == "true"


def hold_back_seconds() -> int:
    """How long an answer waits in the browser before it is sent; until then it can be taken back."""
    return int(settings.REVIEW_HOLD_BACK_SECONDS)


def _zone_of(user: Any) -> ZoneInfo:
    try:
        return ZoneInfo(user.time_zone)
    except (ZoneInfoNotFoundError, ValueError):
        return ZoneInfo("UTC")


class ReviewPage(View):
    """Open to everybody who may see the organization. Whether a person may decide is checked by the services."""

    actor: Actor

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        user: Any = request.user
        if not user.is_authenticated:
            return _to_sign_in(request)
        self.actor = person_actor(user=user, permission=VIEW)
        if not self.actor.organization_ids:
            return render(request, "review/denied.html", status=403)
        enter_scope(self.actor.organization_ids)
        with timezone.override(_zone_of(user)):
            try:
                return super().dispatch(request, *args, **kwargs)
            except DomainError as refusal:
                return self.refused(refusal)

    def refused(self, refusal: DomainError) -> HttpResponse:
        """The refusal as a part for scripts, or as a page."""
        return refusal_answer(self.request, refusal)


def refusal_answer(request: HttpRequest, refusal: DomainError, **context: Any) -> HttpResponse:
    """The refusal as an answer: status 200 for htmx, the refusal's own status for a plain form."""
    # htmx shows only successful answers, and browsers print the others as errors, which hides real errors.
    if is_htmx(request):
        return render(request, "review/parts/refused.html", {"refusal": refusal, **context})
    return render(request, "review/refused.html", {"refusal": refusal, **context}, status=refusal.status)


def _to_sign_in(request: HttpRequest) -> HttpResponseBase:
    """Sends the person to sign in. For htmx the whole page must go there, not the part that it asked for."""
    if not is_htmx(request):
        return redirect_to_login(request.get_full_path())
    answer = HttpResponse()
    answer["HX-Redirect"] = redirect_to_login("/review/").url
    return answer


def etag_of(*parts: object) -> str:
    return f'"{sha256(repr(parts).encode()).hexdigest()[:32]}"'


def unless_known(request: HttpRequest, etag: str) -> HttpResponseNotModified | None:
    """304 if the browser already has this version: an open page asks every four seconds."""
    return HttpResponseNotModified() if request.headers.get("If-None-Match") == etag else None


def live(answer: HttpResponse, etag: str) -> HttpResponse:
    answer["ETag"] = etag
    answer["Cache-Control"] = "private, no-cache"
    return answer


class WordForm(forms.Form):
    action_digest = forms.CharField(max_length=64)
    reason_code = forms.CharField(max_length=64, required=False)
    note = forms.CharField(max_length=280, required=False)


class OverrideForm(WordForm):
    result_ref = forms.CharField(max_length=200, required=False)
    payload_sha256 = forms.RegexField("^([0-9a-f]{64})?$", required=False)


class TaskForm(WordForm):
    """The outcome of a task. The fields of its form are read by the form itself."""

    outcome = forms.CharField(max_length=64)


class DelegateForm(forms.Form):
    to_username = forms.CharField(max_length=150)
    hours = forms.IntegerField(min_value=1, max_value=LONGEST_HOURS)
    tier = forms.CharField(max_length=63, required=False)
    reason_code = forms.CharField(max_length=64)


class NothingForm(forms.Form):
    """Claim and release have no fields."""


def read(form: type[forms.Form], posted: QueryDict) -> dict[str, Any]:
    """The posted values, or a refusal that names the fields."""
    filled = form(posted)
    if filled.is_valid():
        return dict(filled.cleaned_data)
    raise InvalidInput(
        errors=[FieldError(f"/{name}", str(message)) for name, found in filled.errors.items() for message in found]
    )
