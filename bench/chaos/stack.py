"""A whole stack on loopback for a chaos run: PostgreSQL and Valkey behind links that can be cut, the application under
its supervisor."""

import os
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psutil

from config.embedded.paths import PROJECT, StackPaths
from config.embedded.postgres import PostgresServer
from config.embedded.valkey import ValkeyServer
from config.supervisor.servers import Servers, choose_servers
from tests.stack.support import RunningStack, processes_of, wait_for

DATABASE = "postgres"
BROKER = "valkey"


class Link:
    """A process that passes bytes on; see `bench.chaos.link`."""

    def __init__(self, listen: Path, target: Path) -> None:
        self.listen, self.target = listen, target
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self.stop()
        command = [sys.executable, "-m", "bench.chaos.link", str(self.listen), str(self.target)]
        self.process = subprocess.Popen(command, cwd=PROJECT, env=os.environ | {"PYTHONPATH": str(PROJECT)})
        wait_for(self.listen.exists, seconds=10, what="a link")

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None
            self.listen.unlink(missing_ok=True)


class ChaosStack:
    """`seasoned`: a home in which a stack has come up before; without it the first start takes longer."""

    def __init__(self, folder: Path, *, receiver: str, seasoned: Path | None = None) -> None:
        self.folder = folder
        self.home, own = folder / "home", folder / "own"
        own.mkdir(mode=0o711)
        if seasoned is not None:
            subprocess.run(["cp", "-a", str(seasoned), str(self.home)], check=True)
            for name in (DATABASE, BROKER):
                shutil.move(self.home / name, own / name)
        paths = StackPaths(home=own)
        self.servers: Servers = choose_servers(paths=paths, environ={})
        postgres, valkey = self.servers.embedded
        assert isinstance(postgres, PostgresServer)
        assert isinstance(valkey, ValkeyServer)
        self.postgres, self.valkey = postgres, valkey
        links = folder / "links"
        links.mkdir(mode=0o711)
        self.links = {
            DATABASE: Link(links / ".s.PGSQL.5432", paths.postgres_sockets / ".s.PGSQL.5432"),
            BROKER: Link(links / "valkey.sock", paths.valkey_socket),
        }
        behind = quote(str(links), safe="/")
        self.stack = RunningStack(
            home=self.home,
            variables={
                "DATABASE_URL": self.servers.database_url.rpartition("=")[0] + f"={behind}",
                "DATABASE_OWNER_URL": self.servers.database_owner_url.rpartition("=")[0] + f"={behind}",
                "REDIS_URL": f"unix://{behind}/valkey.sock?db=0",
                "HOLDPOINT_DEMO_TARGET": f"http://{receiver}/hook",
                "HOLDPOINT_DEMO_WEBHOOK": f"http://{receiver}/webhook",
                "HOLDPOINT_WEBHOOK_ALLOW_PRIVATE": receiver,
                "HOLDPOINT_RESTART_DELAY": "1",
            },
        )

    def start(self) -> None:
        self.servers.start()
        for link in self.links.values():
            link.start()
        self.stack.start()
        self.demo: dict[str, Any] = self.stack.demo

    def server(self, name: str) -> PostgresServer | ValkeyServer:
        return self.postgres if name == DATABASE else self.valkey

    def server_processes(self, name: str) -> list[psutil.Process]:
        main = self.server(name).process()
        return [] if main is None else [main, *main.children(recursive=True)]

    def child(self, name: str) -> psutil.Process | None:
        """The main process of web, worker, beat or consumer."""
        for one in processes_of(self.home):
            with suppress(psutil.NoSuchProcess, ProcessLookupError):
                if one.name() == f"hp-{name}"[:15] and os.getsid(one.pid) == one.pid:
                    return one
        return None

    def manage(self, *words: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "manage.py", *words]
        environment = self.stack.environment(**self.stack.variables)
        return subprocess.run(command, cwd=PROJECT, env=environment, capture_output=True, text=True, check=False)

    def ready(self, *, seconds: float) -> float:
        """Seconds until everything says that it is ready."""
        began = time.monotonic()

        def asked() -> bool:
            try:
                return self.stack.ready().status == 200
            except (OSError, ValueError):
                return False

        wait_for(asked, seconds=seconds, what="ready")
        return time.monotonic() - began

    def stop(self) -> None:
        try:
            if self.stack.process is not None and not self.stack.ended:
                self.stack.finish(seconds=60)
        finally:
            for link in self.links.values():
                link.stop()
            self.servers.stop()
