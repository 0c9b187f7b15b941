"""The long-running processes (a worker for each lane, beat, consumer, web, modules): what each runs, and how it is
started and stopped."""

import contextlib
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil

from config.embedded.paths import StackPaths
from config.embedded.processes import is_alive, rotate_log, stop_processes
from config.lanes import LANES, queue_of
from config.supervisor.forkserver import ForkServer, marked_processes, stop_session

TERM_THEN_HARDER = ((signal.SIGTERM, 3.0), (signal.SIGQUIT, 1.0), (signal.SIGKILL, 2.0))


def worker_command(lane: str) -> Sequence[str]:
    """The worker of a lane. Its size is a setting."""
    return (
        "celery",
        "--skip-checks",
        "worker",
        f"--queues={queue_of(lane)}",
        f"--hostname={lane}@%h",
        "--without-gossip",
        "--without-mingle",
        "--without-heartbeat",
        "--loglevel=INFO",
    )


# In the order of starting. The first word is one of PROGRAMS in programs.py.
COMMANDS: dict[str, Sequence[str]] = {
    **{lane: worker_command(lane) for lane in LANES},
    "beat": (
        "celery",
        "--skip-checks",
        "beat",
        "--scheduler=config.beat:DueScheduler",
        "--pidfile=",
        "--loglevel=INFO",
    ),
    "consumer": ("manage.py", "consume_events"),
    # Without gunicorn's control socket: it is in the home folder, one for all stacks of this account.
    "web": ("gunicorn", "--config", "config/server/gunicorn.py", "--no-control-socket", "config.wsgi:application"),
}
MODULES: Sequence[str] = ("manage.py", "simulate_modules")


class Child:
    """One long-running process. The stack starts it again if it ends by itself."""

    def __init__(
        self,
        *,
        name: str,
        arguments: Sequence[str],
        forkserver: ForkServer,
        log: Path,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.arguments = arguments
        self.environment = environment or {}
        self.forkserver = forkserver
        self.log = log
        self.process: psutil.Process | None = None

    def alive(self) -> bool:
        """Whether it runs and its fork server does too. Without its fork server it counts as ended, although it may
        hang: beat's handler of SIGTERM can lock up."""
        with contextlib.suppress(psutil.NoSuchProcess):
            process = self.process
            return process is not None and is_alive(process) and process.ppid() == self.forkserver.pid
        return False

    def start(self) -> None:
        """Starts it, after ending what is left of its predecessor."""
        if self.alive():
            return
        self._end_session()
        with self.log.open("ab") as output:
            outputs = [output.fileno(), output.fileno()]
            self.process = self.forkserver.fork(
                name=self.name, arguments=self.arguments, environment=self.environment, outputs=outputs
            )

    def rotate_log(self) -> None:
        rotate_log(self.log)

    def _end_session(self) -> None:
        if self.process is not None:
            stop_session(home=self.forkserver.home, leader=self.process.pid)
            self.process = None


def make_children(*, paths: StackPaths, forkserver: ForkServer) -> list[Child]:
    """The processes of a stack, in the order of starting."""
    return [
        Child(name=name, arguments=arguments, forkserver=forkserver, log=paths.logs / f"{name}.log")
        for name, arguments in COMMANDS.items()
    ]


def make_modules(*, paths: StackPaths, forkserver: ForkServer, demo: Mapping[str, Any], base_url: str) -> Child:
    """The simulated modules. They answer for the demo organization only."""
    person = demo["users"]["reviewer"]
    environment = {
        "HOLDPOINT_MODULES_URL": base_url,
        "HOLDPOINT_MODULES_KEY": demo["keys"]["workflows"],
        "HOLDPOINT_MODULES_ORGANIZATION": demo["organization"]["id"],
        "HOLDPOINT_MODULES_REVIEWER": person["username"],
        "HOLDPOINT_MODULES_REVIEWER_PASSWORD": person["password"],
    }
    log = paths.logs / "modules.log"
    return Child(name="modules", arguments=MODULES, forkserver=forkserver, log=log, environment=environment)


def stop_children(children: Sequence[Child]) -> None:
    """Stops all at once, because none needs another one to end. Signals go to the processes themselves, which end their
    workers. `stop_leftover_children` ends what remains."""
    stop_processes([child.process for child in children if child.process], steps=TERM_THEN_HARDER)


def stop_leftover_children(*, paths: StackPaths) -> None:
    """Ends processes that outlived a killed supervisor of this folder."""
    stop_processes(marked_processes(home=str(paths.home)), steps=TERM_THEN_HARDER)
