"""allauth's pages for adding and removing a passkey, with the ledger entry in the same transaction."""

from typing import Any

from allauth.mfa.models import Authenticator
from allauth.mfa.webauthn.internal import flows
from allauth.mfa.webauthn.views import AddWebAuthnView, RemoveWebAuthnView
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils import timezone

from governance.people.rules.passkeys import PasskeyUnusable
from governance.people.services.passkeys import passkey_register, passkey_remove
from governance.people.web.accounts import rp_id_of
from reasoncodes.base.actors import Actor, ActorKind


def _self(request: HttpRequest) -> Actor:
    """The person as the actor on their own sign-in, which belongs to no organization."""
    user: Any = request.user
    return Actor(ActorKind.PERSON, user.id, frozenset())


class PasskeyAddView(AddWebAuthnView):  # type: ignore[misc]
    def form_valid(self, form: Any) -> HttpResponse:
        request, said = self.request, form.cleaned_data
        codes: list[Any] = []

        def store() -> Authenticator:
            added, made = flows.add_authenticator(request, name=said["name"], credential=said["credential"])
            codes.append(made)
            return added

        user: Any = request.user
        try:
            passkey_register(actor=_self(request), at=timezone.now(), user=user, rp_id=rp_id_of(request), store=store)
        except PasskeyUnusable:
            form.add_error(None, "This kind of passkey cannot be used here. Use another one.")
            return self.form_invalid(form)
        # allauth shows the recovery codes that it made with the first factor.
        self.did_generate_recovery_codes = bool(codes[0])
        return HttpResponseRedirect(self.get_success_url())


class PasskeyRemoveView(RemoveWebAuthnView):  # type: ignore[misc]
    def form_valid(self, form: Any) -> HttpResponse:
        authenticator = self.get_object()
        passkey_remove(
            actor=_self(self.request),
            at=timezone.now(),
            authenticator=authenticator,
            remove=lambda: flows.remove_authenticator(self.request, authenticator),
        )
        return HttpResponseRedirect(self.get_success_url())
