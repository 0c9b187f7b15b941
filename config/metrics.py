"""Prometheus metrics of the web process. Labels are routes, codes and states: never ids or submitted values."""

import os
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client import multiprocess as prometheus_multiprocess

HTTP_REQUESTS = Counter("holdpoint_http_requests_total", "Requests answered.", ["method", "route", "status"])
HTTP_SECONDS = Histogram("holdpoint_http_request_seconds", "Time to answer, by route.", ["route"])


def render_metrics() -> bytes:
    """All processes' figures when PROMETHEUS_MULTIPROC_DIR is set, else this process' own."""
    folder = os.environ.get("PROMETHEUS_MULTIPROC_DIR")
    if not folder:
        return generate_latest()
    Path(folder).mkdir(parents=True, exist_ok=True)
    registry = CollectorRegistry()
    prometheus_multiprocess.MultiProcessCollector(registry)
    return generate_latest(registry)


def render_overdue(overdue: dict[str, int]) -> bytes:
    """What the database says now, the same whichever process is asked."""
    registry = CollectorRegistry()
    gauge = Gauge(
        "holdpoint_requests_overdue", "Exports and deletions past their due date.", ["kind"], registry=registry
    )
    for kind, count in overdue.items():
        gauge.labels(kind).set(count)
    return generate_latest(registry)
