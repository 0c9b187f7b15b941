"""The governed door takes keys, never cookies: nothing that browsers need (sessions, tokens, static files) stands in
its way. What every answer of this server has (trace, problems, security headers, a clean tenant scope) it keeps."""

import re
from collections.abc import Callable
from functools import cached_property
from typing import Any

from csp.middleware import CSPMiddleware
from django.http import HttpRequest, HttpResponse
from django.middleware.clickjacking import XFrameOptionsMiddleware
from django.middleware.security import SecurityMiddleware
from django.urls import ResolverMatch, resolve, reverse

from config.api.problems import as_domain_error, problem_response
from config.middleware.database import drop_stale_connection
from reasoncodes.base.tenancy import leave_scope

DOOR = re.compile(r"/api/v1/execution/([^/\x00]+)/([^/\x00]+)/attempts")


class DoorMiddleware:
    """Right inside RequestContextMiddleware. A `POST` to the door goes to its view; everything else goes on."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response
        self.security = SecurityMiddleware(get_response)
        self.headers: dict[bool, tuple[tuple[str, str], ...]] = {}

    def __call__(self, request: HttpRequest) -> HttpResponse:
        address = DOOR.fullmatch(request.path_info) if request.method == "POST" else None
        if address is None:
            return self.get_response(request)
        response = self._answer(request, *address.groups())
        response["Content-Length"] = str(len(response.content))
        for name, value in self._headers(request):
            response[name] = value
        return response

    def _answer(self, request: HttpRequest, slug: str, version: str) -> HttpResponse:
        request.resolver_match = self.match
        drop_stale_connection()
        leave_scope()
        try:
            request.get_host()  # one that is not ours is refused before anything is looked up
            redirect = self.security.process_request(request)
            return redirect or self.match.func(request, workflow_slug=slug, contract_version=version)
        except Exception as error:
            return problem_response(request, as_domain_error(error))
        finally:
            leave_scope()

    @cached_property
    def match(self) -> ResolverMatch:
        """The route as urls.py has it."""
        address = {"workflow_slug": "slug", "contract_version": "1"}
        return resolve(reverse("attempts:attempt_create", kwargs=address))

    def _headers(self, request: HttpRequest) -> tuple[tuple[str, str], ...]:
        """What the middlewares that are passed by would add; they are asked once, so they stay the only truth."""
        secure = request.is_secure()
        if secure not in self.headers:
            sample: Any = HttpResponse()
            for kind in (XFrameOptionsMiddleware, CSPMiddleware, SecurityMiddleware):
                sample = kind(self.get_response).process_response(request, sample)
            self.headers[secure] = tuple((name, value) for name, value in sample.items() if name != "Content-Type")
        return self.headers[secure]
