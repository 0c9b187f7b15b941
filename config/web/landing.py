"""`/`: what this is and where to go from here."""

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe


@require_safe
def landing(request: HttpRequest) -> HttpResponse:
    return render(request, "landing.html", {"demo": settings.DEMO_ALLOWED})
