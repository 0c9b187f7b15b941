"""After an outage of the database, kept connections heal by themselves. (The 503 itself: config.api.problems.)"""

import threading
from collections.abc import Callable

from django.db import connection
from django.http import HttpRequest, HttpResponse

_outages = 0
_lock = threading.Lock()
_seen = threading.local()


def note_outage() -> None:
    """Tell every thread of this process that its persistent connection may be dead."""
    global _outages
    with _lock:
        _outages += 1


def drop_stale_connection() -> None:
    """Once per thread after an outage: close the kept connection, so that a new one is made.

    Otherwise every thread would fail once more after the database is back. The old one is not asked first: a frozen
    server does not answer, and making a connection costs no more than the question.
    """
    if getattr(_seen, "outages", 0) != _outages:
        _seen.outages = _outages
        if not connection.in_atomic_block:
            connection.close()


class DatabaseAvailabilityMiddleware:
    """Before anything below it asks the database."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        drop_stale_connection()
        return self.get_response(request)
