"""Prometheus metrics of HTTP, the record, the outbox and the streams. Labels are routes, codes, states and witnesses;
never ids or submitted values."""

import os
import re
from datetime import datetime
from pathlib import Path

import structlog
from django.db import Error
from django.utils import timezone
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client import multiprocess as prometheus_multiprocess
from redis.exceptions import RedisError

from governance.integrity.selectors.standing import record_standing
from governance.people.selectors.people import key_ends
from governance.sealing.adapters.trouble import sealing_trouble
from governance.sealing.configured import cosigners_configured, witness_quorum, witnesses_configured
from governance.sealing.selectors.cosignatures import quorum_standing
from governance.sealing.selectors.tree import sealer_lag
from governance.sealing.selectors.witnesses import ledger_denial, witness_standing
from governance.secrets.selectors import secrets_standing
from reasoncodes.base.tenancy import every_tenant
from workflows.events.adapters.streams import group_standings
from workflows.events.selectors import ways

GROUP_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
# Modules create groups as they like; Prometheus must not get an unlimited number of series.
MOST_GROUPS = 500

HTTP_REQUESTS = Counter("holdpoint_http_requests_total", "Requests answered.", ["method", "route", "status"])
HTTP_SECONDS = Histogram("holdpoint_http_request_seconds", "Time to answer, by route.", ["route"])

log = structlog.get_logger("holdpoint.metrics")


def render_metrics() -> bytes:
    """The counters of all processes if PROMETHEUS_MULTIPROC_DIR is set, else of this process; and the figures of the
    record."""
    return _counters_exposed() + _record_gauges() + _way_gauges() + _stream_gauges()


def _record_gauges() -> bytes:
    """Read from the database for each scrape, so that every process reports the same."""
    registry = CollectorRegistry()
    lag = Gauge("holdpoint_sealer_lag_seconds", "How long the oldest unsealed entry has waited.", registry=registry)
    denied = Gauge("holdpoint_ledger_denied", "1 while the record does not fit its witnesses.", registry=registry)
    faults = Gauge("holdpoint_record_faults", "Rows that are not what the ledger says, unaccepted.", registry=registry)
    watched = Gauge("holdpoint_record_checked_seconds", "Since new rows were compared.", registry=registry)
    stopped = Gauge("holdpoint_sealing_stopped", "1 while the sealing key or its signer fails.", registry=registry)
    heads = Gauge("holdpoint_witness_behind_heads", "Heads a witness has not stored.", ["witness"], registry=registry)
    late = Gauge("holdpoint_witness_behind_seconds", "Age of the oldest such head.", ["witness"], registry=registry)
    sealed = Gauge("holdpoint_secrets_sealed", "Sealed texts, by the key that sealed them.", ["key"], registry=registry)
    now = timezone.now()
    try:
        lag.set(sealer_lag(at=now))
        denied.set(ledger_denial() is not None)
        standing_now = record_standing()
        faults.set(standing_now.open)
        watched.set(standing_now.age(at=now) or 0)
        stopped.set(sealing_trouble(at=now) is not None)
        for witness in witnesses_configured():
            standing = witness_standing(witness=witness.name)
            heads.labels(witness.name).set(standing.behind)
            late.labels(witness.name).set(standing.lag(at=now))
        _quorum_gauges(registry, now)
        _key_gauges(registry, now)
        texts = secrets_standing()
        for name, count in (("current", texts.current), ("former", texts.former), ("unknown", texts.unknown)):
            sealed.labels(name).set(count)
    # Figures are left out while the database is away; the others are needed most at that time.
    except Error as error:
        log.warning("record_gauges_unavailable", exc_info=error)
        return b""
    return generate_latest(registry)


def _quorum_gauges(registry: CollectorRegistry, now: datetime) -> None:
    """Left out if no witness cosigns."""
    quorum = quorum_standing(cosigners=cosigners_configured(), wanted=witness_quorum())
    if quorum is not None:
        words = "Age of the oldest head that too few witnesses cosigned."
        Gauge("holdpoint_witness_quorum_behind_seconds", words, registry=registry).set(quorum.lag(at=now))


def _key_gauges(registry: CollectorRegistry, now: datetime) -> None:
    ending = Gauge("holdpoint_api_keys_ending", "Live API keys that end within days.", ["days"], registry=registry)
    endless = Gauge("holdpoint_api_keys_endless", "Live API keys that never end.", registry=registry)
    with every_tenant():
        found = key_ends(at=now)
    for days, count in found.within.items():
        ending.labels(str(days)).set(count)
    endless.set(found.endless)


def _way_gauges() -> bytes:
    """The outbox and parked messages. Left out while the database is away."""
    registry = CollectorRegistry()
    try:
        with every_tenant():
            now = ways(at=timezone.now())
    except Error as error:
        log.warning("way_gauges_unavailable", exc_info=error)
        return b""
    figures = {
        "holdpoint_outbox_lag_seconds": ("How long the oldest due event has waited to be published.", now.outbox_lag),
        "holdpoint_outbox_waiting": ("Events that are not published yet.", now.outbox_waiting),
        "holdpoint_outbox_parked": ("Events that their stream refuses.", now.outbox_parked),
        "holdpoint_messages_parked": ("Messages of the streams that a person must look at.", now.messages_parked),
    }
    for name, (words, value) in figures.items():
        Gauge(name, words, registry=registry).set(value)
    return generate_latest(registry)


def _stream_gauges() -> bytes:
    """How far each consumer group is, ours and the modules'. Left out while Valkey is away."""
    registry, labels = CollectorRegistry(), ["event_type", "group"]
    lag = Gauge("holdpoint_stream_lag", "Messages that a group has not read.", labels, registry=registry)
    pending = Gauge("holdpoint_stream_pending", "Read and not acknowledged.", labels, registry=registry)
    try:
        standings = group_standings()
    except RedisError as error:
        log.warning("stream_gauges_unavailable", error=type(error).__name__)
        return b""
    for one in standings[:MOST_GROUPS]:
        # A group's name is chosen by a module. Text that does not look like a name is not repeated in a label.
        group = one.group if GROUP_NAME.fullmatch(one.group) else "other"
        if one.lag is not None:
            lag.labels(one.event_type, group).inc(one.lag)
        pending.labels(one.event_type, group).inc(one.pending)
    return generate_latest(registry)


def _counters_exposed() -> bytes:
    folder = os.environ.get("PROMETHEUS_MULTIPROC_DIR")
    if not folder:
        return generate_latest()
    # prometheus_client raises if the folder is missing, for example after a reboot cleared it.
    Path(folder).mkdir(parents=True, exist_ok=True)
    registry = CollectorRegistry()
    prometheus_multiprocess.MultiProcessCollector(registry)
    return generate_latest(registry)


def render_overdue(overdue: dict[str, int]) -> bytes:
    """Read from the database, so that every process reports the same."""
    registry = CollectorRegistry()
    gauge = Gauge(
        "holdpoint_requests_overdue", "Exports and deletions past their due date.", ["kind"], registry=registry
    )
    for kind, count in overdue.items():
        gauge.labels(kind).set(count)
    return generate_latest(registry)
