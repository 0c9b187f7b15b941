"""Nothing that Holdpoint answers stays in a cache: not in a browser that others use, and not in a proxy."""

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse

HEADER = "Cache-Control"


class NoStoreMiddleware:
    """Outermost, so that errors have the header too. Static files keep theirs: they contain nobody's data."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        # The pages that poll send the entity tag themselves (static/review/live.js), so a 304 needs no cache.
        if "no-store" not in response.get(HEADER, "") and not self._is_file(request, response):
            response[HEADER] = "no-store"
        return response

    def _is_file(self, request: HttpRequest, response: HttpResponse) -> bool:
        return request.path.startswith(settings.STATIC_URL) and response.status_code in {200, 206, 304}
