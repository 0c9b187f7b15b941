"""Sign-in middleware (allauth, axes) for people's pages only: API, health and metrics do not need it."""

from collections.abc import Callable
from typing import Any

from allauth.account.middleware import AccountMiddleware
from axes.middleware import AxesMiddleware
from django.http import HttpRequest, HttpResponse

PREFIXES = ("/accounts/", "/admin/", "/review/")


class PeopleMiddleware:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response
        self.account: Any = AccountMiddleware(AxesMiddleware(get_response))

    def __call__(self, request: HttpRequest) -> HttpResponse:
        inner = self.account if request.path.startswith(PREFIXES) else self.get_response
        response: HttpResponse = inner(request)
        return response

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        """allauth redirects people to sign in again by raising an exception."""
        if not request.path.startswith(PREFIXES):
            return None
        found: HttpResponse | None = self.account.process_exception(request, error)
        return found
