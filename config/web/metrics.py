"""`/metrics` for Prometheus; behind a token wherever one is set, and production must set one."""

from hmac import compare_digest

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST

from config.api.problems import problem_response
from config.metrics import render_metrics
from reasoncodes.errors import CredentialMissing


@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    given = request.headers.get("Authorization", "").removeprefix("Bearer ")
    if settings.METRICS_TOKEN and not compare_digest(given.encode(), settings.METRICS_TOKEN.encode()):
        return problem_response(request, CredentialMissing())
    return HttpResponse(render_metrics(), content_type=CONTENT_TYPE_LATEST)
