"""The supervisor's side of the process that has loaded the application (forked.py): start it, let it fork, stop it.
Also finds the processes of a stack."""

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

# In the environment of every process of a stack, so that the next start recognises them without knowing their pid.
MARK = "HOLDPOINT_CHILD"
# Loading takes about two seconds; a first start on a slow disk compiles every module.
SECONDS_TO_LOAD = 120


class ForkServer:
    """Loading the application takes seconds, forking milliseconds, so all processes share one loading.

    If it ends, the kernel ends the processes that it forked; the next fork starts it again.
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
        """Begins to load and returns at once. Does nothing if it already runs."""
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
        """A new process in its own session; None if it has already ended. Waits while the application loads."""
        self.start()
        request = {"name": name, "arguments": list(arguments), "environment": {**environment, MARK: name}}
        assert self._control is not None  # noqa: S101 - just started
        with contextlib.suppress(OSError):  # it has ended; the missing answer below shows that
            socket.send_fds(self._control, [json.dumps(request).encode() + b"\n"], list(outputs))
        pid, _, trouble = self._answer(self._control).partition(" ")
        if trouble:
            raise StartError(f"Cannot fork {name}: {trouble}.")
        with contextlib.suppress(psutil.NoSuchProcess):
            return psutil.Process(int(pid))
        return None

    def stop(self) -> None:
        """Ends it and everything that it forked."""
        if self._control is not None:
            self._control.close()
            self._control = None
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _answer(self, control: socket.socket) -> str:
        """One line from it. A signal to the supervisor or the end of the fork server ends the wait."""
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
    """The bytes that arrived; empty if the other side is closed, even if it left data unread."""
    try:
        return control.recv(4096)
    except ConnectionError:
        return b""


def marked_processes(*, home: str, session: int | None = None) -> list[psutil.Process]:
    """Our processes of this folder (and of one session), found by their environment."""

    def belongs(process: psutil.Process) -> bool:
        environ = process.environ()
        marked = MARK in environ and environ.get("HOLDPOINT_HOME") == home
        return marked and (session is None or os.getsid(process.pid) == session)

    return find_processes(belongs)


def stop_session(*, home: str, leader: int) -> None:
    """Ends what a gone process had forked, and the process itself if it hangs: either may still have the port."""
    stop_processes(marked_processes(home=home, session=leader), steps=((signal.SIGKILL, 2.0),))
