"""`make run`: lock, load, servers, migrate, seed, worker, beat, consumer and web, wait until ready, modules, watch,
stop."""

import os
import socket
import time
from collections.abc import Mapping
from typing import Any

from config.embedded.errors import EmbeddedServerError
from config.embedded.paths import StackPaths
from config.supervisor import environment as env
from config.supervisor.children import Child, make_children, make_modules, stop_children, stop_leftover_children
from config.supervisor.errors import StartError, StopRequested
from config.supervisor.forkserver import ForkServer
from config.supervisor.lock import FolderLock
from config.supervisor.readiness import wait_until_ready
from config.supervisor.screen import banner, say
from config.supervisor.servers import choose_servers, stop_leftover_servers
from config.supervisor.steps import CommandStep, read_demo, start_demo, start_migration
from config.supervisor.stopping import StopFlag
from config.supervisor.watch import Watch
from config.supervisor.witness import make_witness, witness_describe

# Looking at every process costs something, so it is done seldom; a signal ends the wait.
WATCH_SECONDS = 1.0
CHILD_RESTART_DELAY = 1.0


def stack_run(*, environ: Mapping[str, str]) -> int:
    """Runs a stack until a signal arrives; returns the exit code."""
    stop = StopFlag()
    stop.install()
    try:
        port = port_from(environ.get("PORT"))
        delay = seconds_from(environ.get("HOLDPOINT_RESTART_DELAY"), default=1.0)
        paths = StackPaths.from_setting(value=environ.get("HOLDPOINT_HOME"))
        paths.create()
        lock = FolderLock(file=paths.lock_file)
        lock.take(note=f"pid {os.getpid()}, http://127.0.0.1:{port}/")
    except (StartError, EmbeddedServerError) as error:
        say(f"Error: {error}", error=True)
        return 1
    try:
        return Stack(paths=paths, port=port, server_restart_delay=delay, environ=environ, stop=stop).live()
    finally:
        lock.release()


def port_from(value: str | None) -> int:
    """PORT as a number on which a process may listen."""
    text = value or "8000"
    if not text.isdecimal() or not 1 <= int(text) <= 65535:
        raise StartError(f"PORT must be a number from 1 to 65535, not {text!r}.")
    return int(text)


def seconds_from(value: str | None, *, default: float) -> float:
    try:
        return float(value) if value else default
    except ValueError:
        raise StartError(f"HOLDPOINT_RESTART_DELAY must be a number of seconds, not {value!r}.") from None


def _check_port_is_free(port: int) -> None:
    """Refuses before anything is started."""
    with socket.socket() as probe:
        # A closed connection in TIME_WAIT does not count as busy: gunicorn uses the same option.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except PermissionError:
            raise StartError(f"Port {port} needs root's rights; choose another: PORT=8000 make run") from None
        except OSError:
            other = port + 1 if port < 65535 else port - 1
            raise StartError(f"Port {port} on 127.0.0.1 is busy; choose another: PORT={other} make run") from None


class Stack:
    """One run of a stack, from the first server to the last message."""

    def __init__(
        self,
        *,
        paths: StackPaths,
        port: int,
        server_restart_delay: float,
        environ: Mapping[str, str],
        stop: StopFlag,
    ) -> None:
        self.paths = paths
        self.port = port
        self.server_restart_delay = server_restart_delay
        self.stop = stop
        self.base_url = f"http://127.0.0.1:{port}"
        self.servers = choose_servers(paths=paths, environ=environ, notice=say)
        self.inherited = environ
        self.forkserver: ForkServer | None = None
        self.children: list[Child] = []
        self.steps: list[CommandStep] = []
        self.witness: list[str] | None = None

    def live(self) -> int:
        """Starts, watches, stops; returns the exit code."""
        code = 0
        try:
            self._start()
            self._watch()
        except StopRequested:
            pass
        except (StartError, EmbeddedServerError) as error:
            say(f"Error: {error}", error=True)
            code = 1
        finally:
            self._stop()
        return code

    def _start(self) -> None:
        began = time.monotonic()
        # Before the port is checked: a worker that outlived a killed supervisor may have the port.
        stop_leftover_children(paths=self.paths)
        stop_leftover_servers(paths=self.paths)
        _check_port_is_free(self.port)
        say(f"Starting Holdpoint from {self.paths.home}")
        forkserver = self._load()
        self._start_servers()
        say("  migrating the database …")
        self._do(start_migration(paths=self.paths, servers=self.servers, forkserver=forkserver))
        say("  starting workers, beat, consumer and web, and seeding the demo …")
        self._start_children(forkserver)
        demo = read_demo(self._do(start_demo(paths=self.paths, forkserver=forkserver)))
        say("  waiting until everything is ready …")
        if not wait_until_ready(port=self.port, stop=self.stop, logs=str(self.paths.logs)):
            say(
                "  in deny mode: the record does not fit its witnesses; see /health/ready and docs/ledger.md",
                error=True,
            )
        seconds = time.monotonic() - began
        self._start_modules(forkserver, demo)
        say(banner(demo=demo, base_url=self.base_url, logs=str(self.paths.logs), seconds=seconds))

    def _load(self) -> ForkServer:
        """Begins to load the application, which takes longer than the start of the servers and needs none of them."""
        env.empty_metrics(paths=self.paths)
        # Before the settings are read: they name it.
        self.witness = witness_describe(paths=self.paths, inherited=self.inherited)
        environment = env.stack_environment(
            paths=self.paths, servers=self.servers, port=self.port, inherited=self.inherited
        )
        log = self.paths.logs / "forkserver.log"
        self.forkserver = ForkServer(environment=environment, log=log, stop=self.stop)
        self.forkserver.start()
        return self.forkserver

    def _start_servers(self) -> None:
        names = [server.name for server in self.servers.embedded]
        say(f"  starting {' and '.join(names)} …" if names else "  using the servers of DATABASE_URL and REDIS_URL")
        self.servers.start()
        self.stop.check()
        env.write_runtime(paths=self.paths, servers=self.servers, base_url=self.base_url)

    def _do(self, begun: CommandStep) -> str:
        self.steps.append(begun)
        return begun.finish(stop=self.stop)

    def _start_children(self, forkserver: ForkServer) -> None:
        self.children = make_children(paths=self.paths, forkserver=forkserver)
        if self.witness:
            self.children.insert(0, make_witness(paths=self.paths, forkserver=forkserver, arguments=self.witness))
        for child in self.children:
            child.rotate_log()
            child.start()

    def _start_modules(self, forkserver: ForkServer, demo: Mapping[str, Any]) -> None:
        """Last, because nothing waits for them. With HOLDPOINT_MODULES=none somebody else answers for the modules."""
        if self.inherited.get("HOLDPOINT_MODULES") != "none":
            modules = make_modules(paths=self.paths, forkserver=forkserver, demo=demo, base_url=self.base_url)
            self.children.append(modules)
            modules.rotate_log()
            modules.start()

    def _watch(self) -> None:
        delays = {server.name: self.server_restart_delay for server in self.servers.embedded}
        delays |= {child.name: CHILD_RESTART_DELAY for child in self.children}
        watch = Watch(watched=[*self.servers.embedded, *self.children], first_delays=delays, say=say)
        while not self.stop.requested:
            watch.look()
            self.stop.sleep(WATCH_SECONDS)

    def _stop(self) -> None:
        """Ends everything that we forked, then Valkey and PostgreSQL. Further signals change nothing."""
        if self.forkserver:
            say("\nStopping …")
        for begun in self.steps:
            begun.stop()
        stop_children(self.children)
        if self.forkserver:
            self.forkserver.stop()
            stop_leftover_children(paths=self.paths)  # also what was being forked when the signal arrived
        try:
            self.servers.stop()
        except EmbeddedServerError as error:
            say(f"Error: {error}", error=True)
        env.remove_runtime(paths=self.paths)
        if self.forkserver:
            say("Stopped.")
