"""`/problems/<type>`: what an error means and what to do, for the person who follows the link in it."""

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from config.api.problems import known_problems


@require_safe
def problem_index(request: HttpRequest) -> HttpResponse:
    return render(request, "problems/index.html", {"problems": known_problems().values()})


@require_safe
def problem_page(request: HttpRequest, code: str) -> HttpResponse:
    problem = known_problems().get(code)
    if problem is None:
        raise Http404
    return render(request, "problems/page.html", {"problem": problem})
