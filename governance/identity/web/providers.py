"""allauth's OIDC and SAML with our conditions: code flow with PKCE, state and nonce, a fixed issuer, signatures always
checked, a recent sign-in at the provider, and each SAML assertion only once."""

from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from allauth.socialaccount.internal import jwtkit
from allauth.socialaccount.models import SocialApp, SocialLogin, SocialToken
from allauth.socialaccount.providers.base import AuthProcess
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from allauth.socialaccount.providers.oauth2.utils import generate_code_challenge
from allauth.socialaccount.providers.openid_connect.provider import OpenIDConnectProvider
from allauth.socialaccount.providers.openid_connect.views import OpenIDConnectOAuth2Adapter
from allauth.socialaccount.providers.saml.provider import SAMLProvider
from allauth.socialaccount.providers.saml.utils import build_auth
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils import timezone
from lxml import etree  # type: ignore[import-untyped]

from governance.identity.configured import fresh_for
from governance.identity.models import IdentityProvider
from governance.identity.selectors import client_secret
from governance.identity.services.assertions import assertion_use
from governance.identity.states import ProviderKind

SKEW_SECONDS = 60
LONGEST_SUBJECT = 191
LINK = "link"
_PROCESSES = {AuthProcess.LOGIN, LINK}
_INSTANT = "string(//*[local-name()='AuthnStatement']/@AuthnInstant)"


def social_app(row: IdentityProvider) -> SocialApp:
    """The row as allauth wants to see it. Not stored: the secret is in clear only here."""
    app = SocialApp(provider="openid_connect", provider_id=row.slug, name=row.organization.name[:40])
    if row.kind == ProviderKind.OIDC:
        app.client_id, app.secret = row.client_id, client_secret(row)
        app.settings = {"server_url": row.issuer.rstrip("/"), "uid_field": "sub"}
    else:
        app.provider, app.client_id = "saml", row.slug
        app.settings = {
            "idp": {"entity_id": row.issuer, "sso_url": row.sso_url, "x509cert": row.certificate},
            "advanced": {
                "strict": True,
                "want_assertion_signed": True,
                "want_name_id": True,
                "reject_deprecated_algorithm": True,
                "reject_idp_initiated_sso": True,
                "want_attribute_statement": False,
                "allow_single_label_domains": True,
            },
        }
    app.identity_provider = row
    return app


def process_of(request: HttpRequest) -> str:
    """Signing in, or linking the account of the person who is signed in. allauth knows more, which nobody needs."""
    asked = request.GET.get("process", AuthProcess.LOGIN)
    return asked if asked in _PROCESSES else AuthProcess.LOGIN


class OidcAdapter(OpenIDConnectOAuth2Adapter):  # type: ignore[misc]  # allauth has no types
    @property
    def openid_config(self) -> dict[str, Any]:
        config: dict[str, Any] = super().openid_config
        # Discovery could name another issuer, whose tokens would then be accepted.
        fixed = self.get_provider().app.identity_provider.issuer
        if str(config.get("issuer", "")).rstrip("/") != fixed.rstrip("/"):
            raise OAuth2Error("the provider names another issuer")
        return config

    def complete_login(self, request: HttpRequest, app: Any, token: SocialToken, **kwargs: Any) -> SocialLogin:
        """The ID token says who; user info may add claims about the same subject."""
        signed = self._decode_id_token(app, kwargs["response"].get("id_token") or "")
        data: dict[str, Any] = {"id_token": signed}
        if "userinfo_endpoint" in self.openid_config:
            more = self._fetch_user_info(token.token)
            if more.get("sub") != signed.get("sub"):
                raise OAuth2Error("user info is about somebody else")
            data["userinfo"] = more | signed
        return self.get_provider().sociallogin_from_response(request, data)

    def _decode_id_token(self, app: Any, id_token: str) -> dict[str, Any]:
        """allauth trusts the connection and skips the signature; a proxy in between could then sign anybody in."""
        decoded: dict[str, Any] = jwtkit.verify_and_decode(
            credential=id_token,
            keys_url=self.openid_config["jwks_uri"],
            issuer=self.openid_config["issuer"],
            audience=app.client_id,
            lookup_kid=jwtkit.lookup_kid_jwk,
        )
        return decoded


class OidcProvider(OpenIDConnectProvider):  # type: ignore[misc]
    oauth2_adapter_class = OidcAdapter

    def get_pkce_params(self) -> dict[str, str]:
        made: dict[str, str] = generate_code_challenge()
        return made

    def get_redirect_from_request_kwargs(self, request: HttpRequest) -> dict[str, Any]:
        """Without the parameters that allauth takes from the address: with them a link could set scope, prompt or
        nonce."""
        found: dict[str, Any] = super().get_redirect_from_request_kwargs(request)
        seconds = int(fresh_for().total_seconds())
        nonce = uuid4().hex
        return {
            "next_url": found.get("next_url"),
            "process": process_of(request),
            "scope": self.get_scope(),
            "auth_params": {"nonce": nonce, "max_age": str(seconds)},
            "nonce": nonce,
        }

    def extract_uid(self, data: dict[str, Any]) -> str:
        """From the signed token alone, whatever user info says."""
        name = self.app.identity_provider.subject_claim or "sub"
        found = data["id_token"].get(name)
        if not isinstance(found, str) or not 0 < len(found) <= LONGEST_SUBJECT:
            raise OAuth2Error("the token has no subject")
        return found

    def serialize(self) -> dict[str, str]:
        """By the slug: another organization's provider may have the same client id."""
        return {"id": self.id, "app.client_id": self.app.provider_id}


def oidc_fits(*, claims: dict[str, Any], state: dict[str, Any], at: datetime) -> bool:
    """Whether the signed token answers our request: its nonce, and a recent sign-in at the provider."""
    signed = claims.get("id_token", {})
    moment = signed.get("auth_time")
    if not state.get("nonce") or signed.get("nonce") != state["nonce"] or not isinstance(moment, int | float):
        return False
    return _recent(datetime.fromtimestamp(moment, UTC), at=at)


def _recent(moment: datetime, *, at: datetime) -> bool:
    age = (at - moment).total_seconds()
    return -SKEW_SECONDS <= age <= fresh_for().total_seconds() + SKEW_SECONDS


class SamlProvider(SAMLProvider):  # type: ignore[misc]
    def redirect(
        self, request: HttpRequest, process: str, next_url: Any = None, data: Any = None, **kwargs: Any
    ) -> HttpResponse:
        """With ForceAuthn: the person proves who they are, although they may have a session at the provider."""
        auth = build_auth(request, self)
        address = auth.login(return_to="", force_authn=True)
        state = {"process": process_of(request)}
        self.stash_redirect_state(
            request, state["process"], next_url, data, state_id=auth.get_last_request_id(), **kwargs
        )
        return HttpResponseRedirect(address)

    def sociallogin_from_response(self, request: HttpRequest, response: Any) -> SocialLogin:
        now = timezone.now()
        instant = etree.fromstring(_last_xml(response)).xpath(_INSTANT)
        until = response.get_last_assertion_not_on_or_after()
        if not instant or until is None or not _recent(datetime.fromisoformat(instant), at=now):
            raise PermissionDenied
        row = self.app.identity_provider
        assertion_use(at=now, provider_id=row.id, assertion_id=response.get_last_assertion_id(), until=until)
        return super().sociallogin_from_response(request, response)

    def extract_uid(self, data: Any) -> str:
        name = self.app.identity_provider.subject_claim
        found = data.get_attributes().get(name, [None])[0] if name else data.get_nameid()
        if not isinstance(found, str) or not 0 < len(found) <= LONGEST_SUBJECT:
            raise PermissionDenied
        return found

    def extract_common_fields(self, data: Any) -> dict[str, Any]:
        """Nothing: the adapter takes what it needs from the claims."""
        return {}


def _last_xml(response: Any) -> bytes:
    text = response.get_last_response_xml()
    return text if isinstance(text, bytes) else str(text).encode()
