"""What a serving process checks before its first request or task: is its database role weak enough, and does the record
continue what the witnesses keep. Also prepares the web server."""

import os
from pathlib import Path

import structlog
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import connection, connections

from attempts.lifecycle.hooks import MOST_WAITING, limit_waiting
from config.database_role import refuse_powerful_roles
from governance.sealing.tasks import ledger_guard

log = structlog.get_logger("holdpoint.startup")


def serving() -> None:
    """Ends the process, with advice, if production would serve with a role that can change the record."""
    if settings.PRODUCTION:
        refuse_powerful_roles()
    try:
        ledger_checked()
    except ImproperlyConfigured as fault:
        raise SystemExit(f"Error: {fault}") from fault


def ledger_checked() -> None:
    """Compares the record with the witnesses."""
    try:
        if not ledger_guard():
            log.error("started_in_deny_mode")
    except ImproperlyConfigured:
        raise
    # A database that is away is no reason not to start: requests are answered with 503 until it is back, and a
    # scheduled task repeats the check.
    except Exception as error:
        log.warning("ledger_not_checked", exc_info=error)
    finally:
        # The process may fork after this; two processes cannot use one connection.
        connection.close()


def web_statements_limited() -> None:
    """In this process, new connections end a statement after the time limit. Workers, migrations and commands have no
    limit: a long verification or migration must be able to finish."""
    connections.settings["default"]["STATEMENT_SECONDS"] = settings.WEB_STATEMENT_SECONDS
    connection.close()


def web_waits_limited(*, threads: int) -> None:
    """At most half of the API's threads sleep for `Prefer: wait`; with few threads that may be none."""
    limit_waiting(min(MOST_WAITING, threads // 2))


def web_prepared(*, workers: int) -> None:
    """Runs before the first worker: checks what only the web server needs, and removes figures of processes that are
    gone."""
    folder = os.environ.get("PROMETHEUS_MULTIPROC_DIR", "")
    if settings.PRODUCTION and not (Path(settings.STATIC_ROOT) / "staticfiles.json").exists():
        raise SystemExit("Error: the static files are not collected: python manage.py collectstatic --noinput")
    if settings.PRODUCTION and workers > 1 and not folder:
        raise SystemExit(
            "Error: /metrics would show one process of several: PROMETHEUS_MULTIPROC_DIR=<a folder on this machine>"
        )
    if folder:
        forget_ended_processes(Path(folder))


def forget_ended_processes(folder: Path) -> None:
    """Removes the metric files of ended processes, which every scrape would read for ever. To Prometheus a counter that
    starts at zero again is normal."""
    folder.mkdir(parents=True, exist_ok=True)
    for file in folder.glob("*_*.db"):
        pid = file.stem.rpartition("_")[2]
        if pid.isdigit() and not Path("/proc", pid).exists():
            file.unlink(missing_ok=True)
