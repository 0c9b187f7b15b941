"""`exec --throwaway`: runs one command with servers in a temporary folder, and leaves nothing behind."""

import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType

from config.embedded.errors import EmbeddedServerError
from config.embedded.paths import StackPaths
from config.embedded.postgres_cluster import APPLICATION_ROLE
from config.supervisor.lock import FolderLock
from config.supervisor.screen import say
from config.supervisor.servers import Servers, choose_servers, stop_leftover_servers
from config.supervisor.stopping import StopFlag

PREFIX = "holdpoint-throwaway-"
# A folder that another run has just created is not locked yet; it must not be deleted under that run.
SECONDS_UNTIL_ABANDONED = 60
COMMAND_NOT_FOUND = 127


def run_throwaway(*, command: Sequence[str], durable: bool, environ: Mapping[str, str]) -> int:
    """Runs `command` between start and stop of the servers; returns the command's exit code."""
    stop = StopFlag()
    stop.install()
    _remove_abandoned_folders()
    paths = StackPaths(home=Path(tempfile.mkdtemp(prefix=PREFIX)).resolve())
    servers = choose_servers(paths=paths, environ=environ, fast=not durable)
    lock: FolderLock | None = None
    try:
        paths.create()
        lock = FolderLock(file=paths.lock_file)
        lock.take(note=f"pid {os.getpid()}")
        servers.start()
        if stop.requested:
            return 128 + signal.SIGTERM
        return _run_command(command, environment=_command_environment(paths, servers, environ), stop=stop)
    except EmbeddedServerError as error:
        say(f"Error: {error}", error=True)
        return 1
    finally:
        stop.install()
        _remove_folder(paths, servers=servers)
        if lock:
            lock.release()


def _command_environment(paths: StackPaths, servers: Servers, environ: Mapping[str, str]) -> dict[str, str]:
    """Tests run as the owner, who may create test databases. HOLDPOINT_APP_ROLE names the application's role."""
    return {
        **environ,
        "DATABASE_URL": servers.database_owner_url,
        "REDIS_URL": servers.redis_url,
        "SECRET_KEY": environ.get("SECRET_KEY") or secrets.token_urlsafe(48),
        "HOLDPOINT_HOME": str(paths.home),
        "HOLDPOINT_APP_ROLE": servers.application_role or APPLICATION_ROLE,
    }


def _run_command(command: Sequence[str], *, environment: Mapping[str, str], stop: StopFlag) -> int:
    """Runs the command in our own process group, so that it has the terminal; passes signals on."""
    try:
        process = subprocess.Popen(command, env=environment)
    except OSError as error:
        say(f"Error: cannot run {command[0]}: {error.strerror}.", error=True)
        return COMMAND_NOT_FOUND

    def hand_on(number: int, frame: FrameType | None) -> None:
        # The terminal has already sent Ctrl-C to the command; a second one would interrupt its clean-up.
        if not (number == signal.SIGINT and sys.stdin is not None and sys.stdin.isatty()):
            process.send_signal(number)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, hand_on)
    if stop.requested:  # it arrived after the last check and before the handlers above
        process.terminate()
    code = process.wait()
    return code if code >= 0 else 128 - code


def _remove_folder(paths: StackPaths, *, servers: Servers) -> None:
    """Stops the servers and deletes their files, even if stopping one of them fails."""
    try:
        servers.stop()
    except EmbeddedServerError as error:
        say(f"Error: {error}", error=True)
    finally:
        for folder in {paths.home, paths.sockets}:
            shutil.rmtree(folder, ignore_errors=True)


def _remove_abandoned_folders() -> None:
    """Removes folders of runs that were killed with -9: the folder exists and nobody has its lock."""
    for folder in Path(tempfile.gettempdir()).resolve().glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError, EmbeddedServerError):
            found = folder.lstat()
            if found.st_uid != os.getuid() or time.time() - found.st_mtime < SECONDS_UNTIL_ABANDONED:
                continue
            paths = StackPaths(home=folder)
            paths.create()
            lock = FolderLock(file=paths.lock_file)
            if lock.try_take():
                stop_leftover_servers(paths=paths)
                shutil.rmtree(folder, ignore_errors=True)
                lock.release()
