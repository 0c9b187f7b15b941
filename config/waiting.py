"""Prometheus figures about waiting work: open reviews, quarantine, shutdowns, late messages, the heartbeat. They are
read for each scrape, so that every process reports the same."""

from collections.abc import Callable
from datetime import datetime

import structlog
from django.conf import settings
from django.db import Error
from prometheus_client import CollectorRegistry, Gauge, generate_latest
from redis.exceptions import RedisError

from attempts.lifecycle.selectors.overview import holds_by_age, quarantine_by_category, quarantine_escalated
from attempts.notify.selectors import notifications_late
from config.clocks import fill_clocks
from config.heartbeat import heartbeat_age
from config.lane_standing import fill_endpoints, fill_lanes
from config.stuck import fill_stuck
from governance.authority.configured import confirm_drill_period
from governance.authority.selectors import authority_list, drill_report, forbidden_report, witnesses_unconfirmed
from governance.console.selectors.pages import shutdowns_covering
from governance.people.selectors.people import organizations_founding_count
from governance.schedule.selectors import foreign_tasks, schedule_standing
from governance.sealing.configured import witness_digests
from reasoncodes.base.tenancy import every_tenant
from workflows.runs.selectors.console import events_unmatched
from workflows.webhooks.selectors import endpoints_disabled

log = structlog.get_logger("holdpoint.metrics")
NO_HEARTBEAT_SECONDS = 3600.0  # Valkey stores the heartbeat for an hour


def render_waiting(*, at: datetime) -> bytes:
    """Each part is left out while the server that it needs is away, which has an alarm of its own."""
    parts = (_people, _authority, _schedule, _clock, fill_clocks, fill_lanes, fill_endpoints, fill_stuck)
    return b"".join(_left_out_when_away(fill, at) for fill in parts)


def _left_out_when_away(fill: Callable[[CollectorRegistry, datetime], None], at: datetime) -> bytes:
    registry = CollectorRegistry()
    try:
        with every_tenant():
            fill(registry, at)
    except (Error, RedisError) as error:
        log.warning("figures_unavailable", error=type(error).__name__)
        return b""
    return generate_latest(registry)


def _schedule(registry: CollectorRegistry, at: datetime) -> None:
    """A series per built-in task, zero while all is well, so that an alert can tell a good figure from none."""
    words = "For how long a scheduled task is overdue."
    overdue = Gauge("holdpoint_scheduled_task_overdue_seconds", words, ["task"], registry=registry)
    words = "1 if a scheduled task is disabled, missing or changed."
    altered = Gauge("holdpoint_scheduled_task_altered", words, ["task"], registry=registry)
    for one in schedule_standing(at=at, grace=settings.BEAT_HEARTBEAT_LIMIT_SECONDS):
        overdue.labels(one.built_in.name).set(one.overdue or 0)
        altered.labels(one.built_in.name).set(bool(one.altered))
    words = "Scheduled tasks that are not built in."
    Gauge("holdpoint_scheduled_tasks_foreign", words, registry=registry).set(len(foreign_tasks()))


def _people(registry: CollectorRegistry, at: datetime) -> None:
    holds = holds_by_age(at=at)
    oldest = (at - holds.oldest).total_seconds() if holds.oldest else 0.0
    Gauge("holdpoint_reviews_waiting", "Open reviews, up to 10,000.", registry=registry).set(holds.total)
    Gauge("holdpoint_reviews_oldest_seconds", "Age of the oldest open review.", registry=registry).set(max(0.0, oldest))
    cases = Gauge("holdpoint_quarantine_open", "Open cases, by category.", ["category"], registry=registry)
    for category, count in quarantine_by_category():
        cases.labels(category).set(count)
    escalated = Gauge("holdpoint_quarantine_escalated", "Open cases that nobody looked at in time.", registry=registry)
    escalated.set(quarantine_escalated())
    engaged = Gauge("holdpoint_shutdowns_engaged", "Shutdowns in force, drills apart.", registry=registry)
    engaged.set(shutdowns_covering().count())
    unmatched = Gauge("holdpoint_events_unmatched", "Events that no run took, up to 10,000.", registry=registry)
    unmatched.set(events_unmatched())
    late = Gauge("holdpoint_notifications_late_seconds", "Since the oldest due message should go.", registry=registry)
    late.set(notifications_late(at=at))
    words = "Endpoints that were disabled by what they answered."
    disabled = Gauge("holdpoint_webhook_endpoints_disabled", words, ["why"], registry=registry)
    for why, count in endpoints_disabled().items():
        disabled.labels(why).set(count)


def _authority(registry: CollectorRegistry, at: datetime) -> None:
    words = "People with roles that are forbidden together, with an exception by two people or without."
    forbidden = Gauge("holdpoint_forbidden_roles", words, ["exception"], registry=registry)
    report = forbidden_report()
    for excepted in (True, False):
        forbidden.labels("yes" if excepted else "no").set(sum(bool(row.until) == excepted for row in report))
    founding = Gauge("holdpoint_organizations_founding", "Organizations in which one acts alone.", registry=registry)
    founding.set(organizations_founding_count())
    waiting = Gauge("holdpoint_authority_waiting", "Proposals that wait for a second person.", registry=registry)
    waiting.set(authority_list(state="proposed").count())
    overdue = Gauge("holdpoint_confirm_drill_overdue", "People who have long confirmed nothing.", registry=registry)
    overdue.set(sum(row.overdue for row in drill_report(at=at, within=confirm_drill_period())))
    differs = Gauge("holdpoint_witnesses_unconfirmed", "1 if others are used than confirmed.", registry=registry)
    differs.set(witnesses_unconfirmed(configured=witness_digests()))


def _clock(registry: CollectorRegistry, at: datetime) -> None:
    age = heartbeat_age(at=at)
    Gauge(
        "holdpoint_heartbeat_age_seconds", "Since a heartbeat came through beat, queue and worker.", registry=registry
    ).set(NO_HEARTBEAT_SECONDS if age is None else age)
