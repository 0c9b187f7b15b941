"""Replaces persistent connections after an outage of the database. (The 503 itself is in config.api.problems.)"""

import threading
from collections.abc import Callable

from django.db import connection
from django.http import HttpRequest, HttpResponse

# Counted per process and compared per thread: while everything works, a request costs one comparison and no query.
_outages = 0
_lock = threading.Lock()
_seen = threading.local()


def note_outage() -> None:
    """Tells every thread of this process that its persistent connection may be dead."""
    global _outages
    with _lock:
        _outages += 1


def drop_stale_connection() -> None:
    """Once per thread after an outage: closes the persistent connection, so that Django opens a new one."""
    # Otherwise every thread would fail once more after the database is back. The old connection is not probed first: a
    # frozen server does not answer, and a new connection costs no more than the probe.
    if getattr(_seen, "outages", 0) != _outages:
        _seen.outages = _outages
        # Closing inside a transaction would lose it; tests run whole requests in one.
        if not connection.in_atomic_block:
            connection.close()


class DatabaseAvailabilityMiddleware:
    """Runs before everything that uses the database."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        drop_stale_connection()
        return self.get_response(request)
