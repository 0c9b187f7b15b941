"""Relaxes the strict content security policy for the two prefixes whose libraries need it."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

RELAXED = {
    # unfold's Alpine.js evaluates expressions and writes style attributes.
    "/admin/": {
        "script-src": ["'self'", "'unsafe-eval'", "'unsafe-inline'"],
        "style-src": ["'self'", "'unsafe-inline'"],
    },
    # swagger-ui starts from an inline script.
    "/api/docs/": {"script-src": ["'self'", "'unsafe-inline'"], "style-src": ["'self'", "'unsafe-inline'"]},
}


class AdminCspMiddleware:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        for prefix, directives in RELAXED.items():
            if request.path.startswith(prefix):
                response._csp_replace = directives  # type: ignore[attr-defined]  # read by django-csp
        return response
