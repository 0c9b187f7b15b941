"""Until a person has the second factor that their role needs, only the pages where they set it up work, and the
sign-out."""

from collections.abc import Callable
from typing import Any

from django.contrib.auth.mixins import LoginRequiredMixin
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views import View

from governance.people.errors import SecondFactorNeeded
from governance.people.selectors.sign_in import PASSKEY_FIRST, unproven

PAGES = ("/accounts/", "/admin/", "/review/")
# The last one: a person without any of it must still be able to leave.
OPEN = (
    "/accounts/2fa/",
    "/accounts/second-factor/",
    "/accounts/reauthenticate/",
    "/accounts/logout/",
    "/admin/logout/",
)


class SecondFactorMiddleware:
    """For people's pages. The API refuses such a session when it authenticates."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if request.path.startswith(PAGES) and not request.path.startswith(OPEN) and _unproven(request):
            return self._sent_there(request)
        return self.get_response(request)

    @staticmethod
    def _sent_there(request: HttpRequest) -> HttpResponse:
        page = reverse("second_factor")
        if request.headers.get("HX-Request"):
            # A script would put a redirect's page into a part of this one.
            return HttpResponse(status=SecondFactorNeeded.status, headers={"HX-Redirect": page})
        if request.method in {"GET", "HEAD"}:
            return redirect(page)
        return _page(request, status=SecondFactorNeeded.status)


class SecondFactorView(LoginRequiredMixin, View):
    def get(self, request: HttpRequest) -> HttpResponse:
        if not _unproven(request):
            return redirect("account_home")
        return _page(request)


def _unproven(request: HttpRequest) -> bool:
    user: Any = request.user
    return bool(user.is_authenticated and unproven(user=user, session=request.session))


def _page(request: HttpRequest, *, status: int = 200) -> HttpResponse:
    context = {"passkey_first": bool(request.session.get(PASSKEY_FIRST)), "refused": status != 200}
    return render(request, "account/second_factor.html", context, status=status)
