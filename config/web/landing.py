"""`/`: what this is and where to go next; in a demo also logins and a first request."""

from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from config.console.start_steps import REVIEW_PAGES
from config.demo.secrets import DemoSecrets
from governance.contracts.rules.starters import attempt_example, curl_line

LOOPBACK = {"127.0.0.1", "::1", ""}
PEOPLE = {
    "operator": "sets up, looks after runs and quarantine, engages shutdowns",
    "operator2": "the second person, who releases a shutdown",
    "reviewer": "decides on what is held",
    "reviewer2": "the second signature, where two are needed",
    "sa_qa": "reviews samples",
    "auditor": "reads everything, changes nothing",
    "owner_privacy": "owns one of the ten areas; the other eight groups have an owner each",
    "admin": "administers the installation",
}


@require_safe
def landing(request: HttpRequest) -> HttpResponse:
    shown = {"demo": settings.DEMO_ALLOWED, "review": REVIEW_PAGES}
    return render(request, "landing.html", shown | _demo(request))


def _demo(request: HttpRequest) -> dict[str, Any]:
    """Logins and a command that works. Never under production settings, and only to browsers on this machine."""
    if not settings.DEMO_ALLOWED or request.META.get("REMOTE_ADDR", "") not in LOOPBACK:
        return {}
    secrets = DemoSecrets()
    known = secrets.values["passwords"]
    logins = [(name, known[name], words) for name, words in PEOPLE.items() if name in known]
    key = secrets.key("caller")
    if not logins or key is None:
        return {}
    line = curl_line(
        base_url=request.build_absolute_uri("/").rstrip("/"),
        slug="demo-hold",
        version=1,
        secret=key,
        key="try-it-out-1",
        body=attempt_example(),
    )
    return {"logins": logins, "line": line}
