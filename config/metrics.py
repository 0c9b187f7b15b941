"""Prometheus metrics. Labels are routes, codes, states and witnesses: never ids or submitted values."""

import os
from pathlib import Path

import structlog
from django.db import Error
from django.utils import timezone
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client import multiprocess as prometheus_multiprocess

from governance.selectors import sealer_lag
from governance.selectors.epoch import ledger_denial
from governance.selectors.witness import witness_standing
from governance.witnesses import witnesses_configured

HTTP_REQUESTS = Counter("holdpoint_http_requests_total", "Requests answered.", ["method", "route", "status"])
HTTP_SECONDS = Histogram("holdpoint_http_request_seconds", "Time to answer, by route.", ["route"])

log = structlog.get_logger("holdpoint.metrics")


def render_metrics() -> bytes:
    """All processes' figures when PROMETHEUS_MULTIPROC_DIR is set, else this process' own; and those of the record."""
    return counted() + record_gauges()


def record_gauges() -> bytes:
    """Read from the database when they are asked for: worker and web see the same. Left out while it is away."""
    registry = CollectorRegistry()
    lag = Gauge("holdpoint_sealer_lag_seconds", "How long the oldest unsealed entry has waited.", registry=registry)
    denied = Gauge("holdpoint_ledger_denied", "1 while the record does not fit its witnesses.", registry=registry)
    heads = Gauge("holdpoint_witness_behind_heads", "Heads a witness has not stored.", ["witness"], registry=registry)
    late = Gauge("holdpoint_witness_behind_seconds", "Age of the oldest such head.", ["witness"], registry=registry)
    now = timezone.now()
    try:
        lag.set(sealer_lag(at=now))
        denied.set(ledger_denial() is not None)
        for witness in witnesses_configured():
            standing = witness_standing(witness=witness.name)
            heads.labels(witness.name).set(standing.behind)
            late.labels(witness.name).set(standing.lag(at=now))
    except Error as error:
        log.warning("record_gauges_unavailable", exc_info=error)
        return b""
    return generate_latest(registry)


def counted() -> bytes:
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
