"""What a forked process runs, and what is loaded before the fork, so that no process loads it for itself."""

import importlib
import os
import sys
import threading
from collections.abc import Callable, Sequence

from celery import platforms
from django.core.management import call_command
from django.db import connections
from gunicorn import util
from gunicorn.app.wsgiapp import WSGIApplication

from config.celery import app as celery_app
from config.embedded.paths import PROJECT
from config.supervisor.forkserver import MARK
from config.supervisor.prepare import prepare

# The first one sets up Django. Web, worker, beat or a step would import the others at their start.
LOADED_BEFORE = (
    "config.wsgi",
    "config.urls",
    "config.server.edge",
    "config.management.commands.consume_events",
    "config.management.commands.demo",
    "celery.bin.celery",
    "celery.apps.beat",
    "celery.apps.worker",
    "celery.concurrency.thread",
    "celery.worker.autoscale",
    "celery.worker.consumer",
    "config.beat",
)


class NotForkable(Exception):
    """Something is open that a fork would share or lose."""


def load() -> None:
    """Imports everything and connects to nothing."""
    for name in LOADED_BEFORE:
        importlib.import_module(name)
    celery_app.loader.import_default_modules()


def refuse_unless_forkable() -> None:
    """A thread does not survive a fork, and two processes cannot use one connection."""
    if threading.active_count() > 1:
        raise NotForkable(f"After loading there are threads: {[one.name for one in threading.enumerate()]}.")
    if any(one.connection is not None for one in connections.all(initialized_only=True)):
        raise NotForkable("After loading the database is connected: an import asks it.")


def _keep_our_titles() -> None:
    """If setproctitle is installed, Celery and gunicorn would rename the process; see also SPT_NOENV in
    environment.py."""
    platforms._setproctitle = None
    util._setproctitle = lambda title: None


def _run_celery(arguments: Sequence[str]) -> None:
    _keep_our_titles()
    sys.exit(celery_app.start(list(arguments)))


def _run_gunicorn(arguments: Sequence[str]) -> None:
    _keep_our_titles()
    sys.argv = ["gunicorn", *arguments]
    WSGIApplication("%(prog)s [OPTIONS] [APP_MODULE]", prog="gunicorn").run()


def _manage_command(arguments: Sequence[str]) -> None:
    """A command of `manage.py`."""
    call_command(*arguments)


def _run_prepare(arguments: Sequence[str]) -> None:
    prepare()


def _run_witness(arguments: Sequence[str]) -> None:
    """As its operator would start it: the file alone, in a new program, and nothing of our environment but what marks
    our processes. So the witness has neither the database's address nor a secret of ours."""
    kept = {name: os.environ[name] for name in (MARK, "HOLDPOINT_HOME", "PATH", "LANG") if name in os.environ}
    program = str(PROJECT / "sdk" / "holdpoint_witness.py")
    os.execve(sys.executable, [sys.executable, "-I", program, *arguments], kept)  # noqa: S606 - our own file


PROGRAMS: dict[str, Callable[[Sequence[str]], None]] = {
    "celery": _run_celery,
    "gunicorn": _run_gunicorn,
    "manage.py": _manage_command,
    "prepare": _run_prepare,
    "witness": _run_witness,
}
