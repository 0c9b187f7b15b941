"""Refusals that plain Django views raise become problem+json too, or a page for a browser. DRF views have their own
handler."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

from config.api.problems import CONTENT_TYPE, as_domain_error, problem_response
from config.web.errors import problem_answer
from reasoncodes.base.errors import DomainError, MethodNotAllowed, NotFound, RecordUnavailable


class ProblemMiddleware:
    """Below `/api/` every error; elsewhere only our own refusals and a lost database, because Django has pages for the
    others."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if "\x00" in request.path:  # PostgreSQL cannot store NUL, so nothing has this address
            return problem_response(request, NotFound())
        response = self.get_response(request)
        # Django's own 405 (plain views, require_safe) is a response, not an exception.
        if response.status_code == MethodNotAllowed.status and response["Content-Type"] != CONTENT_TYPE:
            return problem_response(request, MethodNotAllowed(headers={"Allow": response["Allow"]}))
        return response

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        problem = as_domain_error(error)
        ours = isinstance(error, DomainError) or isinstance(problem, RecordUnavailable)
        if ours or request.path.startswith("/api/"):
            return problem_answer(request, problem)
        return None
