"""Helpers of the stack tests: start our programs as a user would, and look at what runs and what is left."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import psutil

from config.embedded.paths import PROJECT

SUPERVISOR = [sys.executable, "-m", "config.supervisor"]
FACTS = "facts.json"
SERVER_VARIABLES = ("DATABASE_URL", "DATABASE_OWNER_URL", "REDIS_URL", "SECRET_KEY", "PORT", "HOLDPOINT_HOME")


def bare_environment(**values: str) -> dict[str, str]:
    """The environment of a user who has set nothing but `values`."""
    inherited = {name: value for name, value in os.environ.items() if name not in SERVER_VARIABLES}
    inherited.pop("DJANGO_SETTINGS_MODULE", None)
    return {**inherited, "PYTHONPATH": str(PROJECT), **values}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(condition: Callable[[], bool], *, seconds: float, what: str) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"after {seconds} s still not: {what}"
        time.sleep(0.1)


def mentions(process: psutil.Process, text: str) -> bool:
    """Whether a process carries `text` in its command line, its environment or its working folder."""
    try:
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        found = [*process.cmdline(), *process.environ().values(), process.cwd()]
    except (psutil.Error, OSError):
        return False
    return any(text in word for word in found)


def processes_of(folder: Path) -> list[psutil.Process]:
    """Every process that has to do with `folder`, apart from this one."""
    return [one for one in psutil.process_iter() if one.pid != os.getpid() and mentions(one, str(folder))]


def kill_all(folder: Path) -> None:
    """kill -9 of everything that has to do with `folder`."""
    for process in processes_of(folder):
        with_suppressed(process.kill)
    wait_for(lambda: not processes_of(folder), seconds=10, what="all killed")


def with_suppressed(action: Callable[[], Any]) -> None:
    try:
        action()
    except psutil.NoSuchProcess:
        return


@dataclass
class Answer:
    status: int
    content_type: str
    body: dict[str, Any]
    seconds: float


def get(
    url: str, *, headers: Mapping[str, str] | None = None, method: str = "GET", body: bytes | None = None
) -> Answer:
    """One request to a running stack; error statuses are answers too."""
    began = time.monotonic()
    request = urllib.request.Request(url, data=body, headers=dict(headers or {}), method=method)  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=20) as found:  # noqa: S310
            status, kind, text = found.status, found.headers.get("Content-Type", ""), found.read()
    except urllib.error.HTTPError as error:
        with error:
            status, kind, text = error.code, error.headers.get("Content-Type", ""), error.read()
    found_body = json.loads(text) if "json" in kind else {}
    return Answer(status=status, content_type=kind, body=found_body, seconds=time.monotonic() - began)


@dataclass
class RunningStack:
    """`python -m config.supervisor run`, as `make run` starts it."""

    home: Path
    port: int = field(default_factory=free_port)
    variables: Mapping[str, str] = field(default_factory=dict)
    process: "subprocess.Popen[bytes] | None" = None

    @property
    def screen(self) -> Path:
        return self.home.with_name(self.home.name + ".screen")

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def begin(self) -> None:
        with self.screen.open("wb") as output:
            self.process = subprocess.Popen(
                [*SUPERVISOR, "run"],
                cwd=PROJECT,
                env=self.environment(**self.variables),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def start(self) -> None:
        """Start it and wait for the banner."""
        self.begin()
        wait_for(lambda: self.ended or "Ctrl-C stops" in self.text, seconds=150, what="the banner")
        assert not self.ended, self.text

    @property
    def ended(self) -> bool:
        assert self.process is not None
        return self.process.poll() is not None

    @property
    def text(self) -> str:
        return self.screen.read_text()

    def runtime(self) -> dict[str, Any]:
        return dict(json.loads((self.home / "run" / "runtime.json").read_text()))

    def environment(self, **values: str) -> dict[str, str]:
        """Of another terminal beside it."""
        return bare_environment(HOLDPOINT_HOME=str(self.home), PORT=str(self.port), **values)

    def manage(self, *words: str) -> str:
        """`manage.py` in another process, as an operator would beside the running stack."""
        command = [sys.executable, "manage.py", *words]
        done = subprocess.run(command, cwd=PROJECT, env=self.environment(), capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    @cached_property
    def demo(self) -> dict[str, Any]:
        """What `manage.py demo --json` prints: users, keys, contracts, examples. In a seasoned home it is a file."""
        known = self.home / FACTS
        return dict(json.loads(known.read_text() if known.exists() else self.manage("demo", "--json")))

    def server_pid(self) -> int:
        """The pid of PostgreSQL's main process."""
        return int((self.home / "postgres" / "postmaster.pid").read_text().split()[0])

    def ready(self) -> Answer:
        return get(f"{self.base_url}/health/ready")

    def finish(self, number: int = signal.SIGTERM, *, seconds: float = 20) -> int:
        assert self.process is not None
        self.process.send_signal(number)
        return self.process.wait(timeout=seconds)
