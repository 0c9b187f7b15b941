"""`/health` says that the process answers. `/health/ready` names each dependency and its state."""

import time
from collections.abc import Callable
from typing import Any

import structlog
from django.conf import settings
from django.db import DatabaseError, connection
from django.http import HttpRequest, JsonResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from config.celery import app as celery_app
from config.clocks import clocks_apart
from config.heartbeat import heartbeat_age
from config.lane_standing import LaneStanding, lane_standings, without_worker
from config.middleware.database import drop_stale_connection, note_outage
from config.stuck import Stuck, stuck, stuck_words
from governance.integrity.selectors.standing import record_standing
from governance.outside.valkey import valkey
from governance.retention.selectors.retention import requests_overdue
from governance.schedule.selectors import foreign_tasks, schedule_standing
from governance.sealing.adapters.trouble import sealing_trouble
from governance.sealing.configured import cosigners_configured, witness_quorum, witnesses_configured
from governance.sealing.selectors.cosignatures import quorum_standing
from governance.sealing.selectors.tree import oldest_writer, sealer_lag
from governance.sealing.selectors.witnesses import ledger_denial, witness_standing
from reasoncodes.base.tenancy import every_tenant
from workflows.events.selectors import inbound_trouble

log = structlog.get_logger("holdpoint.health")
MOST_NAMED = 10


class NotReady(Exception):
    """A probe's own result; the text is ours and may be shown."""


def _check_database() -> None:
    drop_stale_connection()
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM django_migrations WHERE app = 'governance'")
        if cursor.fetchone() == (0,):
            raise NotReady("the schema is not migrated")


def _check_broker() -> None:
    # Short timeouts: load balancers give up on a probe after a few seconds.
    with celery_app.connection_for_write(connect_timeout=2) as broker:
        broker.ensure_connection(max_retries=1, interval_start=0, interval_step=0, timeout=2)


def _check_streams() -> str | None:
    """Fails if the streams cannot be reached. If nobody reads them, or too slowly, it is only a note: nothing is
    lost."""
    valkey().exists("holdpoint:streams:probe")
    return inbound_trouble(most_behind=settings.CONSUMER_LIMIT_MESSAGES, silent_seconds=settings.CONSUMER_LIMIT_SECONDS)


def _check_beat() -> None:
    age = heartbeat_age(at=timezone.now())
    if age is None:
        raise NotReady("no heartbeat has come through beat and a worker yet")
    if age > settings.BEAT_HEARTBEAT_LIMIT_SECONDS:
        raise NotReady(f"the last heartbeat through beat and a worker is {age:.0f} s old")


def _check_clock() -> str | None:
    """Fails if a built-in scheduled task is overdue, disabled or changed. A task that somebody added is a note."""
    standing = schedule_standing(at=timezone.now(), grace=settings.BEAT_HEARTBEAT_LIMIT_SECONDS)
    troubles = [one.trouble for one in standing if one.trouble]
    if troubles:
        more = f" and {len(troubles) - MOST_NAMED} more" if len(troubles) > MOST_NAMED else ""
        raise NotReady(f"scheduled tasks: {'; '.join(troubles[:MOST_NAMED])}{more}")
    # Their names are not ours, so they are not shown to everybody.
    foreign = len(foreign_tasks())
    return f"scheduled tasks that are not built in: {foreign}" if foreign else None


def _check_sealer() -> str | None:
    """Fails when entries wait too long. Before that it is a note: they wait, and none is lost."""
    now = timezone.now()
    lag, trouble = sealer_lag(at=now), sealing_trouble(at=now)
    if lag > settings.SEALER_LAG_LIMIT_SECONDS:
        why = f"; {trouble}" if trouble else oldest_writer()
        raise NotReady(f"the oldest entry of the record has waited {lag:.0f} s to be sealed{why}")
    return trouble


def _check_ledger() -> None:
    """Deny mode: nothing is accepted or sent until a person has confirmed what is lost."""
    denial = ledger_denial()
    if denial is not None:
        found = " ".join(str(finding["words"]) for finding in denial.preview.get("findings", [])[:3])
        raise NotReady(f"the record does not fit its witnesses, and everything is stopped. {found}")


def _check_record() -> str | None:
    """Fails if rows differ from the ledger and everything is stopped. A fault of one organization is a note."""
    standing = record_standing()
    if any(one.organization_id is None for one in standing.denied):
        raise NotReady(f"{standing.open} rows of the record are not what the ledger says, and everything is stopped")
    if standing.open:
        return f"{standing.open} rows of the record are not what the ledger says; their organizations are stopped"
    age = standing.age(at=timezone.now())
    late = age is not None and age > settings.RECORD_WATCH_LIMIT_SECONDS
    return f"new rows were last compared with the ledger {age:.0f} s ago" if late else None


def _check_witnesses() -> str | None:
    """Never fails, because the record works without witnesses. Says which witness is behind, and whether too few
    cosigned."""
    now = timezone.now()
    limits = {"heads": settings.WITNESS_LIMIT_HEADS, "seconds": settings.WITNESS_LIMIT_SECONDS}
    standings = [witness_standing(witness=witness.name) for witness in witnesses_configured()]
    late = [one for one in standings if one.alarming(at=now, **limits)]
    said = [f"{one.witness} is {one.behind} heads and {one.lag(at=now):.0f} s behind" for one in late]
    quorum = quorum_standing(cosigners=cosigners_configured(), wanted=witness_quorum())
    if quorum and quorum.missing(at=now, seconds=settings.WITNESS_LIMIT_SECONDS):
        fewer = f"fewer than {quorum.wanted} of {quorum.known} witnesses cosigned heads beyond {quorum.size} entries"
        said.append(f"{fewer}, for {quorum.lag(at=now):.0f} s")
    return "; ".join(said) or None


def _check_clocks() -> str | None:
    """Never fails: deadlines go by the database's clock. What a wrong clock writes down is wrong all the same."""
    apart = clocks_apart()
    if not apart:
        return None
    most = max(apart, key=abs)
    which = "ahead of" if most > 0 else "behind"
    return f"{len(apart)} processes have another time than the database, up to {abs(most):.1f} s {which} it"


CHECKS: dict[str, Callable[[], str | None]] = {
    "database": _check_database,
    "broker": _check_broker,
    "streams": _check_streams,
    "beat": _check_beat,
    "clock": _check_clock,
    "clocks": _check_clocks,
    "sealer": _check_sealer,
    "ledger": _check_ledger,
    "record": _check_record,
    "witnesses": _check_witnesses,
}
# Skipped if the database fails: each would wait for it again.
ASK_THE_DATABASE = {
    "clock",
    "clocks",
    "sealer",
    "ledger",
    "record",
    "witnesses",
}


def _run_check(name: str) -> dict[str, Any]:
    """Checks one dependency. Errors are named by class only: their texts may contain addresses or row values."""
    started = time.perf_counter()
    result: dict[str, Any] = {"status": "ok"}
    try:
        note = CHECKS[name]()
        result |= {"note": note} if note else {}
    except NotReady as finding:
        result = {"status": "failing", "detail": str(finding)}
    # Whatever a client library raises, the answer must still list the other dependencies.
    except Exception as error:
        if name == "database":
            note_outage()
            connection.close()
        log.warning("not_ready", check=name, exc_info=error)
        result = {"status": "failing", "detail": f"unreachable ({type(error).__name__})"}
    return result | {"ms": round((time.perf_counter() - started) * 1000, 1)}


def _run_checks() -> dict[str, dict[str, Any]]:
    results: dict[str, dict[str, Any]] = {}
    for name in CHECKS:
        if name in ASK_THE_DATABASE and results["database"]["status"] != "ok":
            results[name] = {"status": "unknown", "detail": "the database is failing", "ms": 0.0}
        else:
            results[name] = _run_check(name)
    return results


def notes(results: dict[str, dict[str, Any]], lanes: dict[str, LaneStanding], still: dict[str, Stuck]) -> list[str]:
    """What an operator should know although it makes nothing unready: an overdue request stops no service."""
    if results["database"]["status"] != "ok":
        return []
    with every_tenant():
        overdue = requests_overdue(at=timezone.now())
    said = [f"{count} {kind} requests are past their due date" for kind, count in overdue.items() if count]
    return said + stuck_words(still) + [f"no worker of the lane {lane} has been seen" for lane in without_worker(lanes)]


def _lanes_and_stuck(results: dict[str, dict[str, Any]]) -> tuple[dict[str, LaneStanding], dict[str, Stuck]]:
    """Empty while the database is away."""
    if results["database"]["status"] != "ok":
        return {}, {}
    try:
        now = timezone.now()
        return lane_standings(at=now), stuck(at=now)
    except DatabaseError as error:  # lost after the check; the next probe says so
        log.warning("lanes_unknown", exc_info=error)
        return {}, {}


def _status(results: dict[str, dict[str, Any]], still: dict[str, Stuck]) -> str:
    """`degraded`: it answers and decides, but somebody should look. Traffic must not be taken away for that."""
    if any(result["status"] != "ok" for result in results.values()):
        return "unavailable"
    waits = any(one.count for one in still.values()) or "note" in results["clocks"]
    return "degraded" if waits else "ready"


@require_safe
def health(_: HttpRequest) -> JsonResponse:
    return JsonResponse({"status": "ok"})


@require_safe
def health_ready(_: HttpRequest) -> JsonResponse:
    results = _run_checks()
    lanes, still = _lanes_and_stuck(results)
    status = _status(results, still)
    response = JsonResponse(
        {
            "status": status,
            "checks": results,
            "lanes": {lane: one.as_json() for lane, one in lanes.items()},
            "stuck": {name: one.count for name, one in still.items()},
            "notes": notes(results, lanes, still),
        },
        status=503 if status == "unavailable" else 200,
    )
    response["Cache-Control"] = "no-store"
    if status == "unavailable":
        response["Retry-After"] = "5"
    return response
