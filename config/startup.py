"""What a serving process does before its first request or task: is it safe, and does the record fit its witnesses."""

import os
from pathlib import Path

import structlog
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import connection

from config.database_role import refuse_powerful_roles
from governance.sealing.tasks import ledger_guard

log = structlog.get_logger("holdpoint.startup")


def serving() -> None:
    """Ends the process, with the way out, when production would serve with a role that can change the record."""
    if settings.PRODUCTION:
        refuse_powerful_roles()
    try:
        ledger_checked()
    except ImproperlyConfigured as fault:
        raise SystemExit(f"Error: {fault}") from fault


def ledger_checked() -> None:
    """A database that is away is no reason not to start: requests answer 503 until it is back; the clock asks again."""
    try:
        if not ledger_guard():
            log.error("started_in_deny_mode")
    except ImproperlyConfigured:
        raise
    except Exception as error:
        log.warning("ledger_not_checked", exc_info=error)
    finally:
        connection.close()


def web_prepared(*, workers: int) -> None:
    """Before the first worker: what only the web server needs, and no figures of processes that are gone."""
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
    """Their files would be read with every scrape for ever. A counter that begins anew is nothing new to Prometheus."""
    folder.mkdir(parents=True, exist_ok=True)
    for file in folder.glob("*_*.db"):
        pid = file.stem.rpartition("_")[2]
        if pid.isdigit() and not Path("/proc", pid).exists():
            file.unlink(missing_ok=True)
