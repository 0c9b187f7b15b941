"""Refusals as JSON for programs, as a page for people; also for requests that never reached a view."""

import sys

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from config.api.problems import as_domain_error, problem_response
from reasoncodes.base.errors import DomainError, InternalError, InvalidInput, NotFound


def problem_answer(request: HttpRequest, error: DomainError) -> HttpResponse:
    if request.path.startswith("/api/") or "text/html" not in request.headers.get("Accept", ""):
        return problem_response(request, error)
    context = {"problem": type(error), "detail": error.detail}
    page = render(request, "problems/answer.html", context, status=error.status)
    for name, value in error.headers.items():
        page[name] = value
    return page


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    return problem_answer(request, InvalidInput("The request could not be understood."))


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    return problem_answer(request, NotFound())


def server_error(request: HttpRequest) -> HttpResponse:
    """Called while the exception is being handled."""
    # An exception in a middleware does not pass ProblemMiddleware: a lost database must be 503 there too.
    error = sys.exc_info()[1]
    return problem_answer(request, as_domain_error(error) if isinstance(error, Exception) else InternalError())
