"""The pages of one-time links: choose a password or a passkey by a link, and ask for a link by mail."""

from typing import Any

from allauth.account.internal.flows.login import perform_login, record_authentication
from allauth.account.models import Login
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.decorators import method_decorator
from django.views import View
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters

from governance.people.configured import mail_reaches_people
from governance.people.errors import LinkNotValid, TooManyAsked
from governance.people.models import SignInLink
from governance.people.rules.sign_in import token_hash
from governance.people.selectors.sign_in import PASSKEY_FIRST, sign_in_link_open
from governance.people.services.links import sign_in_link_use
from governance.people.services.sign_in_mail import password_reset_ask
from governance.people.web.accounts import client_ip
from governance.people.web.forms import LinkForm, PasswordResetForm
from reasoncodes.base.errors import InvalidInput

INVITATION = SignInLink.Purpose.INVITATION


@method_decorator(never_cache, name="dispatch")
@method_decorator(sensitive_post_parameters(), name="dispatch")
class SignInLinkView(View):
    """GET changes nothing, because mail programs open links before people do."""

    link: SignInLink

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        found = sign_in_link_open(token_sha256=token_hash(kwargs["token"]), at=timezone.now())
        if found is None:
            return _ended(request)
        # Otherwise one person's browser would quietly become another person's.
        if request.user.is_authenticated:
            return render(request, "account/link_signed_in.html", {"link": found}, status=409)
        self.link = found
        return super().dispatch(request, *args, **kwargs)

    def get(self, request: HttpRequest, token: str) -> HttpResponse:
        return self._page(request, LinkForm(user=self.link.user))

    def post(self, request: HttpRequest, token: str) -> HttpResponse:
        if self.link.purpose == INVITATION and request.POST.get("choice") == "passkey":
            return self._used(request, token, None)
        form = LinkForm(request.POST, user=self.link.user)
        if not form.is_valid():
            return self._page(request, form)
        try:
            return self._used(request, token, form.cleaned_data["new"])
        except InvalidInput as refusal:
            for problem in refusal.errors:
                form.add_error("new", problem.message)
            return self._page(request, form)

    def _used(self, request: HttpRequest, token: str, password: str | None) -> HttpResponse:
        try:
            link = sign_in_link_use(
                at=timezone.now(),
                token=token,
                password=password,
                address=client_ip(request),
                browser=request.headers.get("User-Agent", ""),
            )
        except LinkNotValid:  # somebody was faster
            return _ended(request)
        if link.purpose == INVITATION:
            return _signed_in(request, link, passkey=password is None)
        # Not signed in: a mailbox that somebody else reads must not stand in for the second factor.
        messages.success(request, "Your password is changed, and you are signed out everywhere. Sign in with it now.")
        return redirect("account_login")

    def _page(self, request: HttpRequest, form: LinkForm) -> HttpResponse:
        context = {"form": form, "link": self.link, "invitation": self.link.purpose == INVITATION}
        return render(request, "account/link.html", context, status=400 if form.errors else 200)


def _signed_in(request: HttpRequest, link: SignInLink, *, passkey: bool) -> HttpResponse:
    where = reverse("mfa_add_webauthn") if passkey else reverse("account_home")
    response = perform_login(request, Login(user=link.user, redirect_url=where))
    # They have just proven themselves: the page of the second factor need not ask for the password again.
    record_authentication(request, link.user, method="password", reauthenticated=True)
    if passkey:
        request.session[PASSKEY_FIRST] = True
    return response


def _ended(request: HttpRequest) -> HttpResponse:
    return render(request, "account/link_ended.html", {"mail": mail_reaches_people()}, status=LinkNotValid.status)


@method_decorator(never_cache, name="dispatch")
class PasswordResetView(View):
    """Asks for a name. The answer is the same whether somebody has this name or not."""

    def get(self, request: HttpRequest) -> HttpResponse:
        return self._page(request, PasswordResetForm())

    def post(self, request: HttpRequest) -> HttpResponse:
        form = PasswordResetForm(request.POST)
        if not mail_reaches_people() or not form.is_valid():
            return self._page(request, form, status=400)
        try:
            password_reset_ask(at=timezone.now(), typed=form.cleaned_data["typed"], source=client_ip(request))
        except TooManyAsked as refusal:
            form.add_error(None, refusal.advice())
            return self._page(request, form, status=refusal.status)
        return render(request, "account/password_reset_asked.html")

    @staticmethod
    def _page(request: HttpRequest, form: PasswordResetForm, *, status: int = 200) -> HttpResponse:
        context = {"form": form, "mail": mail_reaches_people()}
        return render(request, "account/password_reset.html", context, status=status)
