"""`/metrics` for Prometheus; behind a token if one is set. Production must set one."""

from hmac import compare_digest

from django.conf import settings
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST

from config.api.problems import problem_response
from config.metrics import render_metrics, render_overdue
from config.waiting import render_waiting
from governance.retention.selectors.retention import requests_overdue
from reasoncodes.base.errors import CredentialMissing
from reasoncodes.base.tenancy import every_tenant


@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    given = request.headers.get("Authorization", "").removeprefix("Bearer ")
    # In constant time, so that the token cannot be guessed byte by byte. As bytes: compare_digest raises for text that
    # is not ASCII.
    if settings.METRICS_TOKEN and not compare_digest(given.encode(), settings.METRICS_TOKEN.encode()):
        return problem_response(request, CredentialMissing())
    figures = render_metrics() + _overdue() + render_waiting(at=timezone.now())
    return HttpResponse(figures, content_type=CONTENT_TYPE_LATEST)


def _overdue() -> bytes:
    """Left out while the database is away; the other figures are needed most at that time."""
    try:
        with every_tenant():
            return render_overdue(requests_overdue(at=timezone.now()))
    except DatabaseError:
        return b""
