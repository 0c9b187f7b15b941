"""The embedded PostgreSQL: start, adopt a running one, stop. It listens on a Unix socket only. A start after kill -9
works."""

import contextlib
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import psutil

from config.embedded import postgres_cluster as cluster
from config.embedded.accounts import Account, account_for, make_readable, open_the_way, popen_options
from config.embedded.errors import EmbeddedServerError
from config.embedded.paths import PROJECT, StackPaths
from config.embedded.processes import (
    POLL_SECONDS,
    find_processes,
    is_alive,
    last_lines,
    rotate_log,
    send_signal,
    spawn,
    stop_processes,
    wait_until,
)

# Long, because after kill -9 the server first replays its WAL.
SECONDS_TO_START = 60
# SIGINT is PostgreSQL's fast shutdown. SIGQUIT skips the checkpoint, and the next start replays the WAL.
FAST_THEN_HARDER = ((signal.SIGINT, 5.0), (signal.SIGQUIT, 2.0), (signal.SIGKILL, 2.0))


@dataclass(frozen=True, kw_only=True)
class LockFile:
    """The content of `postmaster.pid`, which may be left over from a killed server."""

    pid: int
    status: str

    @classmethod
    def read(cls, data: Path) -> "LockFile | None":
        with contextlib.suppress(OSError, ValueError, IndexError):
            lines = (data / "postmaster.pid").read_text().splitlines()
            return cls(pid=int(lines[0]), status=lines[7].strip() if len(lines) > 7 else "")
        return None


class PostgresServer:
    """One server on `paths.postgres_data`. `start` adopts a running one; `stop` may be called twice."""

    name = "postgres"

    def __init__(
        self,
        *,
        paths: StackPaths,
        settings: Mapping[str, str] = cluster.DURABLE_SETTINGS,
        notice: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.paths = paths
        self.settings = settings
        self.notice = notice
        self.log = paths.logs / "postgres.log"
        self._started: subprocess.Popen[bytes] | None = None

    def url(self, *, role: str) -> str:
        """The address for `role`, in the form that both libpq and django-environ read."""
        host = quote(str(self.paths.postgres_sockets), safe="/")
        return f"postgresql://{role}@/{cluster.DATABASE}?host={host}"

    def process(self) -> psutil.Process | None:
        """The running server, no matter who started it."""
        self._reap()
        lock = LockFile.read(self.paths.postgres_data)
        if lock is None:
            return None
        with contextlib.suppress(psutil.Error):
            process = psutil.Process(lock.pid)
            # After kill -9 the number in the pid file may be another program's by now.
            if self._works_here(process) and is_alive(process):
                return process
        return None

    def alive(self) -> bool:
        return self.process() is not None

    def start(self) -> None:
        """Creates the data folder if it is missing, starts the server, and returns when it accepts connections."""
        self.paths.create()
        account = account_for(data=self.paths.postgres_data)
        self._prepare(account)
        if not self.alive():
            self._clear_what_was_left()
            command = [str(cluster.binaries() / "postgres"), "-D", str(self.paths.postgres_data)]
            self._started = spawn(
                command,
                log=self.log,
                cwd=self.paths.postgres_data,
                env=cluster.clean_environment(),
                umask=0o077,
                **popen_options(account),
            )
        self._wait_until_ready()

    def stop(self) -> None:
        """Fast shutdown: sessions are cut, and nothing that was committed is lost."""
        process = self.process()
        for sleeper in find_processes(self._works_here):  # a backend stopped by SIGSTOP would block the shutdown
            send_signal(sleeper, signal.SIGCONT)
        if process is not None and not stop_processes([process], steps=FAST_THEN_HARDER):
            raise EmbeddedServerError(f"PostgreSQL (pid {process.pid}) does not end.")
        self._stop_backends(grace=2.0)
        self._reap()

    def rotate_log(self) -> None:
        rotate_log(self.log)

    def _prepare(self, account: Account | None) -> None:
        """Data folder, socket folder and settings, accessible for the account that the server runs as."""
        data, sockets = self.paths.postgres_data, self.paths.postgres_sockets
        sockets.mkdir(mode=0o700, exist_ok=True)
        if account:
            account.own(sockets)
            self._let_in(account)
        if not data.exists():
            durable = self.settings.get("fsync") != "off"
            cluster.cluster_create(data=data, account=account, log=self.log, durable=durable)
        cluster.cluster_check(data=data)
        cluster.settings_write(data=data, settings=self.settings, sockets=sockets, account=account)

    def _let_in(self, account: Account) -> None:
        try:
            make_readable(cluster.program_folders())
            targets = (cluster.binaries() / "postgres", self.paths.postgres_data, self.paths.postgres_sockets)
            opened = [folder for target in targets for folder in open_the_way(target)]
        except OSError as error:
            raise EmbeddedServerError(f"Account {account.uid} cannot be let in for PostgreSQL: {error}.") from error
        own = (PROJECT, self.paths.home)
        outside = [str(one) for one in opened if not any(map(one.is_relative_to, own))]
        if outside:
            self.notice(f"PostgreSQL cannot run as root: other accounts may now pass through {', '.join(outside)}")

    def _works_here(self, process: psutil.Process) -> bool:
        """A server process has its data folder as its working folder. Its command line is no sign: it can be
        changed."""
        return bool(process.name() == "postgres" and process.cwd() == str(self.paths.postgres_data))

    def _clear_what_was_left(self) -> None:
        """After kill -9: waits for orphaned backends, and removes pid files whose number now belongs to another
        process."""
        self._stop_backends(grace=5.0)
        for file in (
            self.paths.postgres_data / "postmaster.pid",
            self.paths.postgres_sockets / ".s.PGSQL.5432.lock",
        ):
            with contextlib.suppress(OSError, ValueError):
                # PostgreSQL itself replaces a pid file whose process is gone, but refuses to start while any process
                # has the number.
                if psutil.pid_exists(int(file.read_text().split()[0])):
                    file.unlink()

    def _stop_backends(self, *, grace: float) -> None:
        """Backends without a postmaster end by themselves. One that does not would block the next start."""
        backends = find_processes(self._works_here)
        if backends and not wait_until(lambda: not any(map(is_alive, backends)), seconds=grace):
            stop_processes(backends, steps=((signal.SIGQUIT, 2.0), (signal.SIGKILL, 2.0)))

    def _wait_until_ready(self) -> None:
        started = self._started
        deadline = time.monotonic() + SECONDS_TO_START
        while time.monotonic() < deadline:
            lock = LockFile.read(self.paths.postgres_data)
            if lock and lock.status == "ready" and self.alive():
                return
            if started is not None and started.poll() is not None:
                break
            time.sleep(POLL_SECONDS)
        raise EmbeddedServerError(f"PostgreSQL did not start: {last_lines(self.log)} (all of it in {self.log})")

    def _reap(self) -> None:
        """Collects the exit status of a server that we started, so that no zombie stays."""
        if self._started is not None and self._started.poll() is not None:
            self._started = None
