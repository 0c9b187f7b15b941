"""The process that has loaded the application (forked.py), seen from the supervisor: start it, have it fork, end it."""

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

from config.embedded.paths import PROJECT
from config.embedded.processes import find_processes, last_words, rotate_log, spawn, stop_processes
from config.supervisor.errors import StartError
from config.supervisor.prctl import end_with_parent
from config.supervisor.stopping import POLL_SECONDS, StopFlag

# Carried by every process of a stack, so that the next start knows them again whatever their pid is.
MARK = "HOLDPOINT_CHILD"
SECONDS_TO_LOAD = 120


class ForkServer:
    """Loading the application takes seconds of a core, forking milliseconds: six processes share one loading.

    When it ends, the kernel ends what it forked; the next fork starts it again.
    """

    def __init__(self, *, environment: Mapping[str, str], log: Path, stop: StopFlag) -> None:
        self.environment = {**environment, MARK: "forkserver"}
        self.log = log
        self.stop_flag = stop
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None

    @property
    def home(self) -> str:
        return self.environment["HOLDPOINT_HOME"]

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None else None

    def start(self) -> None:
        """Begin to load, and return at once; one that runs is left alone."""
        if self._process is not None and self._process.poll() is None:
            return
        self.stop()
        rotate_log(self.log)
        self._control, theirs = socket.socketpair()
        with theirs:
            self._process = spawn(
                [sys.executable, "-m", "config.supervisor.forked", str(theirs.fileno())],
                log=self.log,
                cwd=PROJECT,
                env=self.environment,
                pass_fds=[theirs.fileno()],
                preexec_fn=end_with_parent,
            )

    def fork(
        self, *, name: str, arguments: Sequence[str], environment: Mapping[str, str], outputs: Sequence[int]
    ) -> psutil.Process | None:
        """A new process, in a session of its own; None when it has ended already. Waits while the application loads."""
        self.start()
        request = {"name": name, "arguments": list(arguments), "environment": {**environment, MARK: name}}
        assert self._control is not None  # noqa: S101 - just started
        with contextlib.suppress(OSError):  # it has ended, as the missing answer will show
            socket.send_fds(self._control, [json.dumps(request).encode() + b"\n"], list(outputs))
        pid, _, trouble = self._answer(self._control).partition(" ")
        if trouble:
            raise StartError(f"Cannot fork {name}: {trouble}.")
        with contextlib.suppress(psutil.NoSuchProcess):
            return psutil.Process(int(pid))
        return None

    def stop(self) -> None:
        """End it, and so what it forked."""
        if self._control is not None:
            self._control.close()
            self._control = None
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _answer(self, control: socket.socket) -> str:
        """One line from it. A signal to the supervisor ends the waiting, and so does its own end."""
        deadline = time.monotonic() + SECONDS_TO_LOAD
        text = b""
        while not text.endswith(b"\n"):
            self.stop_flag.check()
            if time.monotonic() > deadline:
                self.stop()
                raise StartError(f"The application is not loaded after {SECONDS_TO_LOAD} s; see {self.log}.")
            if select.select([control], [], [], POLL_SECONDS)[0]:
                part = received(control)
                if not part:
                    self.stop()
                    raise StartError(f"The application does not load: {last_words(self.log)} (see {self.log})")
                text += part
        return text.decode().strip()


def received(control: socket.socket) -> bytes:
    """What came; nothing when the other side is closed, whether it had read everything or not."""
    try:
        return control.recv(4096)
    except ConnectionError:
        return b""


def marked_processes(*, home: str, session: int | None = None) -> list[psutil.Process]:
    """Our processes of this folder (and of one session), by the environment that they were started with."""

    def belongs(process: psutil.Process) -> bool:
        environ = process.environ()
        marked = MARK in environ and environ.get("HOLDPOINT_HOME") == home
        return marked and (session is None or os.getsid(process.pid) == session)

    return find_processes(belongs)


def stop_session(*, home: str, leader: int) -> None:
    """End what a process that is gone had forked, and itself if it hangs: either may still hold the port."""
    stop_processes(marked_processes(home=home, session=leader), steps=((signal.SIGKILL, 2.0),))
