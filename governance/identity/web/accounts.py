"""Our answers to allauth about providers: which there are, who signs in by them, and that nothing of theirs is kept."""

from typing import Any

import requests
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.models import SocialApp, SocialLogin
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone

from governance.identity.adapters import GuardedSession
from governance.identity.errors import ProviderAnswerInvalid, ProviderRequired
from governance.identity.selectors import provider_actor, provider_by_slug, provider_required_for
from governance.identity.services.people import person_link
from governance.identity.services.sign_in import provider_sign_in
from governance.identity.states import ProviderKind
from governance.identity.web.providers import LINK, oidc_fits, social_app
from governance.people.models import User
from governance.people.rules.roles import VIEW
from governance.people.selectors.people import person_actor
from governance.people.web.accounts import AccountAdapter, signed_in_recently
from reasoncodes.base.errors import DomainError
from reasoncodes.base.tenancy import tenant_scope

NAMES = ("preferred_username", "username", "email")


class SignInAdapter(AccountAdapter):
    def pre_login(self, request: HttpRequest, user: Any, **kwargs: Any) -> HttpResponse | None:
        """Password and passkey are refused to people who must use a provider; before a second factor is asked for."""
        by_provider = "sociallogin" in (kwargs.get("signal_kwargs") or {})
        required = None if by_provider else provider_required_for(user=user)
        if required is not None:
            context = {"problem": ProviderRequired(), "organization": required.organization}
            return render(request, "identity/refused.html", context, status=403)
        response: HttpResponse | None = super().pre_login(request, user, **kwargs)
        return response


class ProviderAdapter(DefaultSocialAccountAdapter):  # type: ignore[misc]  # allauth has no types
    def list_apps(
        self, request: HttpRequest, provider: str | None = None, client_id: str | None = None
    ) -> list[SocialApp]:
        """One by its slug, and never a list: nobody may read which organizations use which provider."""
        # allauth names a provider by its kind and client id, or by its own id; both are the slug here.
        slug = client_id if provider in {"saml", "openid_connect"} else provider
        row = provider_by_slug(slug=slug) if slug else None
        app = social_app(row) if row else None
        return [app] if app and (provider != "saml" or app.provider == "saml") else []

    def get_requests_session(self) -> GuardedSession:
        return GuardedSession()

    def new_user(self, request: HttpRequest, sociallogin: SocialLogin) -> User:
        """Called while allauth reads the answer. What the provider says stays in memory: nothing is stored, and no
        mail address is left by which allauth could find somebody."""
        sociallogin.claims = sociallogin.account.extra_data
        sociallogin.account.extra_data = {}
        sociallogin.email_addresses = []
        return User()

    def populate_user(self, request: HttpRequest, sociallogin: SocialLogin, data: Any) -> User:
        user: User = sociallogin.user
        return user

    def is_open_for_signup(self, request: HttpRequest, sociallogin: SocialLogin) -> bool:
        return False

    def authenticate_by_email(self, sociallogin: SocialLogin) -> None:
        return None

    def pre_social_login(self, request: HttpRequest, sociallogin: SocialLogin) -> None:
        """After the provider's answer was checked, before anybody is signed in."""
        try:
            row = sociallogin.provider.app.identity_provider
            claims, at = sociallogin.claims, timezone.now()
            if row.kind == ProviderKind.OIDC and not oidc_fits(claims=claims, state=sociallogin.state, at=at):
                raise ProviderAnswerInvalid
            if sociallogin.state.get("process") == LINK:
                self._link(request, sociallogin)
            flat = _flat(claims) if row.kind == ProviderKind.OIDC else claims
            sociallogin.user = provider_sign_in(
                actor=provider_actor(row),
                at=at,
                provider=row,
                subject=sociallogin.account.uid,
                claims=flat,
                name=_name(flat),
            )
        except DomainError as refusal:
            raise ImmediateHttpResponse(_refused(request, refusal)) from refusal

    @staticmethod
    def _link(request: HttpRequest, sociallogin: SocialLogin) -> None:
        user: Any = request.user
        row, at = sociallogin.provider.app.identity_provider, timezone.now()
        # Fresh, because a found open browser would otherwise be enough to take the account over for good.
        if not user.is_authenticated or not signed_in_recently(request, at=at):
            raise ProviderAnswerInvalid("Sign in again, then link the account.")
        with tenant_scope({row.organization_id}):
            person_link(
                actor=person_actor(user=user, permission=VIEW),
                at=at,
                provider=row,
                user=user,
                subject=sociallogin.account.uid,
            )
        raise ImmediateHttpResponse(redirect("usersessions_list"))

    def on_authentication_error(
        self, request: HttpRequest, provider: Any, error: Any = None, exception: Any = None, extra_context: Any = None
    ) -> None:
        """One page for everything that goes wrong between us and the provider, without its text."""
        unreachable = isinstance(exception, requests.RequestException)
        detail = "The provider could not be reached." if unreachable else ""
        raise ImmediateHttpResponse(_refused(request, ProviderAnswerInvalid(detail)))


def _refused(request: HttpRequest, refusal: DomainError) -> HttpResponse:
    return render(request, "identity/refused.html", {"problem": refusal}, status=refusal.status)


def _flat(claims: dict[str, Any]) -> dict[str, Any]:
    """User info and the signed token as one; where both say something, the signed one counts."""
    return dict(claims.get("userinfo", {})) | dict(claims.get("id_token", {}))


def _name(claims: dict[str, Any]) -> str:
    for key in NAMES:
        value = claims.get(key)
        found = value[0] if isinstance(value, list) and value else value
        if isinstance(found, str) and found.strip():
            return found
    return ""
