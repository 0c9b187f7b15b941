"""How each lane stands: how long its oldest due work has waited, and how many of its places are in use. For readiness
and metrics."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import datetime

import structlog
from prometheus_client import CollectorRegistry, Gauge
from redis.exceptions import RedisError

from attempts.execution.selectors import dispatch_lag
from attempts.notify.selectors import notifications_late
from config.celery import SCHEDULE
from config.heartbeat import heartbeat_age
from config.lane_places import LanePlaces, lane_places
from config.lanes import ADAPTERS, CLOCK, DISPATCH, EVIDENCE, LANES, NOTIFICATIONS, WEBHOOKS
from governance.evidence.selectors import bundles_lag
from governance.sealing.selectors.tree import sealer_lag
from reasoncodes.base.tenancy import every_tenant
from workflows.runs.selectors.console import outbox_waiting
from workflows.webhooks.selectors import endpoints_behind

log = structlog.get_logger("holdpoint.lanes")


@dataclass(frozen=True, slots=True)
class LaneStanding:
    """`busy` and `size` are None while Valkey is away: nobody knows."""

    oldest_s: float
    busy: int | None
    size: int | None

    def as_json(self) -> dict[str, float | int | None]:
        return asdict(self)


def _clock_lag(at: datetime) -> float:
    """The sealer, or the heartbeat beyond its interval."""
    try:
        beat = (heartbeat_age(at=at) or 0.0) - SCHEDULE["heartbeat"][1]
    except RedisError:
        beat = 0.0
    return max(0.0, beat, sealer_lag(at=at))


def _webhooks_lag(at: datetime) -> float:
    """Without endpoints that fail: what waits there waits for them, not for the lane."""
    return max((one.seconds for one in endpoints_behind(at=at) if not one.failing), default=0.0)


LAGS: dict[str, Callable[[datetime], float]] = {
    CLOCK: _clock_lag,
    DISPATCH: lambda at: outbox_waiting(at=at).lag_seconds,
    ADAPTERS: lambda at: dispatch_lag(),
    WEBHOOKS: _webhooks_lag,
    NOTIFICATIONS: lambda at: notifications_late(at=at),
    EVIDENCE: lambda at: bundles_lag(),
}


def lane_standings(*, at: datetime) -> dict[str, LaneStanding]:
    """Asks the database; the caller leaves it out while the database is away."""
    places: dict[str, LanePlaces] = {}
    try:
        places = lane_places()
    except RedisError as error:
        log.warning("lane_places_unknown", error=type(error).__name__)
    found = {}
    with every_tenant():
        for lane in LANES:
            mine = places.get(lane)
            oldest = round(LAGS[lane](at), 1)
            found[lane] = LaneStanding(oldest, mine.busy if mine else None, mine.size if mine else None)
    return found


def without_worker(standings: dict[str, LaneStanding]) -> list[str]:
    return [lane for lane, one in standings.items() if one.size == 0]


def fill_lanes(registry: CollectorRegistry, at: datetime) -> None:
    oldest = Gauge(
        "holdpoint_lane_oldest_seconds", "How long a lane's oldest due work has waited.", ["lane"], registry=registry
    )
    busy = Gauge("holdpoint_lane_busy", "Places of a lane that are in use.", ["lane"], registry=registry)
    size = Gauge("holdpoint_lane_size", "Places of a lane; 0: it has no worker.", ["lane"], registry=registry)
    for lane, one in lane_standings(at=at).items():
        oldest.labels(lane).set(one.oldest_s)
        busy.labels(lane).set(one.busy or 0)
        size.labels(lane).set(one.size or 0)


def fill_endpoints(registry: CollectorRegistry, at: datetime) -> None:
    """The worst endpoints, each by its id: a name or address would show values."""
    words = "How long an endpoint's oldest due delivery has waited; `failing` if it gave no good answer last."
    lag = Gauge("holdpoint_webhook_endpoint_lag_seconds", words, ["endpoint", "failing"], registry=registry)
    for one in endpoints_behind(at=at):
        lag.labels(str(one.endpoint_id), "yes" if one.failing else "no").set(one.seconds)
