"""Other queues than Valkey, from the machine's packages, on loopback ports and in a folder of their own."""

import os
import shutil
import signal
import socket
import subprocess
from pathlib import Path

from tests.stack.support import free_port, kill_all, wait_for

RABBITMQ = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")  # the one in PATH changes the account when root starts it
PASSWORD = "loopback-only-9817"


class Broker:
    """A server that can be killed and started again with its data."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.folder.mkdir(parents=True)
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                self.command(),
                env=os.environ | self.environment(),
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        wait_for(self.answers, seconds=60, what=f"{type(self).__name__} on port {self.port}")

    def kill(self) -> None:
        assert self.process is not None
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(10)
        wait_for(lambda: not self.answers(), seconds=10, what="the port is free")

    def remove(self) -> None:
        """Also what it left in the background, such as Erlang's port mapper: found by its working folder."""
        kill_all(self.folder)
        if self.process is not None:
            self.process.wait(10)

    def answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as wire:
                wire.sendall(self.greeting)
                return bool(wire.recv(1))
        except OSError:
            return False

    greeting = b""
    url = ""

    def command(self) -> list[str]:
        raise NotImplementedError

    def environment(self) -> dict[str, str]:
        return {"HOLDPOINT_BROKER_FOLDER": str(self.folder)}


class Redis(Broker):
    greeting = b"AUTH " + PASSWORD.encode() + b"\r\n"

    @property
    def url(self) -> str:  # type: ignore[override]
        return f"redis://:{PASSWORD}@127.0.0.1:{self.port}/0"

    def command(self) -> list[str]:
        settings = ("--bind", "127.0.0.1", "--requirepass", PASSWORD, "--appendonly", "yes", "--maxmemory-policy")
        return ["redis-server", "--port", str(self.port), "--dir", str(self.folder), *settings, "noeviction"]


class RabbitMq(Broker):
    greeting = b"AMQP\x00\x00\x09\x01"

    @property
    def url(self) -> str:  # type: ignore[override]
        return f"amqp://holdpoint:{PASSWORD}@127.0.0.1:{self.port}//"

    def command(self) -> list[str]:
        (self.folder / "rabbitmq.conf").write_text(
            f"listeners.tcp.1 = 127.0.0.1:{self.port}\ndefault_user = holdpoint\ndefault_pass = {PASSWORD}\n"
        )
        return [str(RABBITMQ)]

    def environment(self) -> dict[str, str]:
        mapper, wire = getattr(self, "_ports", None) or (free_port(), free_port())
        self._ports = (mapper, wire)
        return super().environment() | {
            "HOME": str(self.folder),
            "RABBITMQ_NODENAME": f"hp{self.port}@localhost",
            "RABBITMQ_CONFIG_FILE": str(self.folder / "rabbitmq.conf"),
            "RABBITMQ_MNESIA_BASE": str(self.folder / "data"),
            "RABBITMQ_LOG_BASE": str(self.folder / "logs"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self.folder / "plugins"),
            "RABBITMQ_DIST_PORT": str(wire),
            "ERL_EPMD_PORT": str(mapper),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1} +S 1:1",
        }


INSTALLED: dict[str, type[Broker]] = {
    **({"redis": Redis} if shutil.which("redis-server") else {}),
    **({"rabbitmq": RabbitMq} if RABBITMQ.exists() else {}),
}
