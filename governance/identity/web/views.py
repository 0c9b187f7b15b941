"""Pages of sign-in by a provider: find the organization, go to its provider, come back."""

from typing import Any

import requests
from allauth.account import views as account_views
from allauth.mfa.utils import is_mfa_enabled
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from allauth.socialaccount.providers.oauth2.views import OAuth2CallbackView, OAuth2LoginView
from allauth.socialaccount.providers.saml import views as saml
from django.contrib.auth.mixins import LoginRequiredMixin
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme, urlencode
from django.views import View
from django.views.decorators.csrf import csrf_exempt

from governance.identity.errors import ProviderAnswerInvalid
from governance.identity.models import IdentityProvider
from governance.identity.selectors import (
    person_at_provider,
    provider_by_slug,
    provider_of_organization,
    provider_required_for,
)
from governance.identity.states import ProviderKind
from governance.identity.web.providers import OidcAdapter

LONGEST_ANSWER = 128 * 1024


def start_url(provider: IdentityProvider, *, back: str = "", process: str = "") -> str:
    if provider.kind == ProviderKind.OIDC:
        address = reverse("openid_connect_login", args=[provider.slug])
    else:
        address = reverse("saml_login", args=[provider.slug])
    query = {key: value for key, value in {"next": back, "process": process}.items() if value}
    return f"{address}?{urlencode(query)}" if query else address


class OrganizationView(View):
    """`/accounts/sso/`: asks for the organization. `/accounts/sso/<slug>/`: the way to its provider."""

    def get(self, request: HttpRequest, slug: str = "") -> HttpResponse:
        asked = slug or request.GET.get("organization", "").strip().lower()
        back = _safe(request, request.GET.get("next", ""))
        if asked and not slug:
            query = f"?{urlencode({'next': back})}" if back else ""
            # Only what can be part of an address; everything else is nobody's slug.
            if not asked.replace("-", "").isalnum() or not asked.isascii():
                return self._page(request, None, back, unknown=True)
            return redirect(reverse("identity_organization", args=[asked]) + query)
        provider = provider_of_organization(organization_slug=asked) if asked else None
        return self._page(request, provider, back, unknown=bool(asked) and provider is None)

    @staticmethod
    def _page(request: HttpRequest, provider: IdentityProvider | None, back: str, *, unknown: bool) -> HttpResponse:
        context = {
            "provider": provider,
            "start": start_url(provider, back=back) if provider else "",
            "next": back,
            "unknown": unknown,
        }
        return render(request, "identity/organization.html", context, status=404 if unknown else 200)


class LinkView(LoginRequiredMixin, View):
    """The signed-in person ties their account to the provider of their organization. The provider's answer is refused
    unless they signed in recently."""

    def get(self, request: HttpRequest, slug: str) -> HttpResponse:
        provider = provider_of_organization(organization_slug=slug)
        if provider is None:
            raise Http404
        return render(request, "identity/link.html", {"provider": provider})

    def post(self, request: HttpRequest, slug: str) -> HttpResponse:
        provider = provider_of_organization(organization_slug=slug)
        if provider is None:
            raise Http404
        # A page with a link, not a redirect: the content policy lets our forms lead to ourselves only.
        context = {"provider": provider, "start": start_url(provider, process="link")}
        return render(request, "identity/link.html", context)


def oidc_login(request: HttpRequest, provider_id: str) -> HttpResponseBase:
    return _oidc(OAuth2LoginView, request, provider_id)


def oidc_callback(request: HttpRequest, provider_id: str) -> HttpResponseBase:
    return _oidc(OAuth2CallbackView, request, provider_id)


def _oidc(view: Any, request: HttpRequest, provider_id: str) -> HttpResponseBase:
    row = provider_by_slug(slug=provider_id)
    if row is None or row.kind != ProviderKind.OIDC:
        raise Http404
    try:
        answer: HttpResponseBase = view.adapter_view(OidcAdapter(request, provider_id))(request)
        return answer
    # What the provider says in discovery, keys or token may be anything, and allauth catches only a part of it.
    except (OAuth2Error, requests.RequestException, KeyError, TypeError, ValueError):
        return render(request, "identity/refused.html", {"problem": ProviderAnswerInvalid()}, status=403)


def saml_finish(request: HttpRequest, **kwargs: Any) -> HttpResponseBase:
    """allauth's view, with our page for an answer that was not asked for or is not recent."""
    try:
        answer: HttpResponseBase = saml.finish_acs(request, **kwargs)
        return answer
    except (PermissionDenied, ProviderAnswerInvalid, ValueError):
        return render(request, "identity/refused.html", {"problem": ProviderAnswerInvalid()}, status=403)


@csrf_exempt
def saml_answer(request: HttpRequest, **kwargs: Any) -> HttpResponseBase:
    """allauth keeps the answer for a moment, until the same browser comes back for it. A limit, because anybody can
    post here."""
    if request.method != "POST" or len(request.POST.get("SAMLResponse", "")) > LONGEST_ANSWER:
        raise Http404
    answer: HttpResponseBase = saml.acs(request, **kwargs)
    return answer


def no_single_logout(request: HttpRequest, **_: Any) -> HttpResponse:
    """allauth names this address in its SAML settings. Sessions end by SCIM or here, not by the provider's pages."""
    raise Http404


def reauthenticate(request: HttpRequest) -> HttpResponseBase:
    """People who have nothing of their own to prove themselves with do it at their provider."""
    user: Any = request.user
    if user.is_authenticated and not user.has_usable_password() and not is_mfa_enabled(user):
        person = person_at_provider(user=user)
        provider = provider_required_for(user=user) or (person.provider if person and person.provider.active else None)
        if provider is not None:
            back = _safe(request, request.GET.get("next", ""))
            return redirect(start_url(provider, back=back))
    answer: HttpResponseBase = account_views.reauthenticate(request)
    return answer


def _safe(request: HttpRequest, address: str) -> str:
    allowed = url_has_allowed_host_and_scheme(
        address, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return address if allowed else ""
