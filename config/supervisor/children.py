"""web, worker and beat: how each is started, found again after kill -9, and ended."""

import contextlib
import ctypes
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

from config.embedded.paths import PROJECT, StackPaths
from config.embedded.processes import find_processes, rotate_log, spawn, stop_processes

# Carried by every process of a stack, so that the next start knows them again whatever their pid is.
MARK = "HOLDPOINT_CHILD"
PR_SET_PDEATHSIG = 1
TERM_THEN_HARDER = ((signal.SIGTERM, 3.0), (signal.SIGQUIT, 1.0), (signal.SIGKILL, 2.0))

CELERY = ("-m", "celery", "--app", "config", "--skip-checks")
COMMANDS: dict[str, Sequence[str]] = {
    "worker": (
        *CELERY,
        "worker",
        "--concurrency=2",
        "--without-gossip",
        "--without-mingle",
        "--loglevel=INFO",
    ),
    "beat": (
        *CELERY,
        "beat",
        "--scheduler=django_celery_beat.schedulers:DatabaseScheduler",
        "--pidfile=",
        "--loglevel=INFO",
    ),
    # Without the control socket: it would sit in the home folder, one for all stacks of this account.
    "web": ("-m", "gunicorn", "--config", "config/gunicorn.py", "--no-control-socket", "config.wsgi:application"),
}


class Child:
    """One long-running process. The stack starts it again when it ends by itself."""

    def __init__(self, *, name: str, arguments: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
        self.name = name
        self.arguments = arguments
        self.environment = {**environment, MARK: name}
        self.log = log
        self._process: subprocess.Popen[bytes] | None = None

    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start it, after what a dead predecessor forked: that may still hold the port."""
        if self.alive():
            return
        if self._process is not None:
            self._stop_marked()
        self._process = spawn(
            [sys.executable, *self.arguments],
            log=self.log,
            cwd=PROJECT,
            env=self.environment,
            preexec_fn=end_with_parent,
        )

    def stop(self) -> None:
        """Ask the process itself, so that it ends its workers in its own way; then insist with all of them."""
        if self._process is None:
            return
        with contextlib.suppress(psutil.NoSuchProcess):
            if self.alive():
                stop_processes([psutil.Process(self._process.pid)], steps=TERM_THEN_HARDER)
        self._stop_marked()
        self._process.wait()
        self._process = None

    def rotate_log(self) -> None:
        rotate_log(self.log)

    def _stop_marked(self) -> None:
        found = marked_processes(home=self.environment["HOLDPOINT_HOME"], name=self.name)
        stop_processes(found, steps=((signal.SIGKILL, 2.0),))


def make_children(*, paths: StackPaths, environment: Mapping[str, str]) -> list[Child]:
    """The processes of a stack in starting order; they end in the order web, beat, worker."""
    return [
        Child(name=name, arguments=arguments, environment=environment, log=paths.logs / f"{name}.log")
        for name, arguments in COMMANDS.items()
    ]


def end_with_parent() -> None:
    """In the new process: have the kernel end it with the supervisor. Elsewhere the next start does it."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def marked_processes(*, home: str, name: str | None = None) -> list[psutil.Process]:
    """Our processes of this folder (and of this name), by the environment they were started with."""

    def belongs(process: psutil.Process) -> bool:
        environ = process.environ()
        mark = environ.get(MARK)
        return mark is not None and environ.get("HOLDPOINT_HOME") == home and name in (None, mark)

    return find_processes(belongs)


def stop_leftover_children(*, paths: StackPaths) -> None:
    """End what outlived a killed supervisor of this folder."""
    stop_processes(marked_processes(home=str(paths.home)), steps=TERM_THEN_HARDER)
