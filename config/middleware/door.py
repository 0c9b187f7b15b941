"""Sends intake's requests directly to their view. Intake takes keys, never cookies, so it skips what browsers need
(sessions, CSRF, static files). It keeps what every answer has: trace, problems, security headers, a clean tenant
scope."""

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
    """Directly inside RequestContextMiddleware. A POST to intake goes to its view; every other request goes on."""

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
        # The next two calls stand for DatabaseAvailabilityMiddleware and TenantScopeMiddleware, which are skipped.
        drop_stale_connection()
        leave_scope()
        try:
            request.get_host()  # raises for a host that is not in ALLOWED_HOSTS, before anything is looked up
            redirect = self.security.process_request(request)
            return redirect or self.match.func(request, workflow_slug=slug, contract_version=version)
        # No other middleware is below that would turn an error into problem+json.
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
        """The headers that the skipped middleware would add. They are asked once for HTTP and once for HTTPS, so that
        each header is still defined in one place."""
        secure = request.is_secure()
        if secure not in self.headers:
            sample: Any = HttpResponse()
            for kind in (XFrameOptionsMiddleware, CSPMiddleware, SecurityMiddleware):
                sample = kind(self.get_response).process_response(request, sample)
            self.headers[secure] = tuple((name, value) for name, value in sample.items() if name != "Content-Type")
        return self.headers[secure]
