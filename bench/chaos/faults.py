"""Does what the plan says to a running stack, undoes it, and writes down from when to when something was away."""

import os
import signal
import subprocess
import threading
import time
from contextlib import ExitStack, suppress
from typing import Any

import psutil

from bench.chaos.history import History
from bench.chaos.plan import Fault
from bench.chaos.stack import BROKER, DATABASE, ChaosStack
from tests.config.edge_clients import Edge, sockets

SERVERS = (DATABASE, BROKER)


class FaultInjector(threading.Thread):
    """One fault after another, at their times."""

    def __init__(self, stack: ChaosStack, history: History, plan: list[Fault]) -> None:
        super().__init__(name="faults", daemon=True)
        self.stack, self.history, self.plan = stack, history, plan
        self.over = threading.Event()

    def run(self) -> None:
        began = time.monotonic()
        for fault in self.plan:
            if self.over.wait(max(0.0, began + fault.at - time.monotonic())):
                return
            started = self.history.now()
            note: dict[str, Any] = {}
            try:
                self.inject(fault, note)
            # A fault that could not be made must not end the run; the history says so.
            except Exception as error:
                note["failed"] = f"{type(error).__name__}: {error}"[:200]
            ended = self.history.now()
            self.history.write("fault", name=fault.name, target=fault.target, began=started, ended=ended, **note)

    def inject(self, fault: Fault, note: dict[str, Any]) -> None:
        act = getattr(self, fault.name)
        act(fault, note)

    def _away(self, fault: Fault, note: dict[str, Any]) -> None:
        """Nothing passes from now on, until this returns."""
        note["away"] = {"what": fault.target, "began": self.history.now()}
        self.over.wait(fault.seconds)
        note["away"]["ended"] = self.history.now()

    def kill(self, fault: Fault, note: dict[str, Any]) -> None:
        if fault.target in SERVERS:
            server = self.stack.server(fault.target)
            everything = self.stack.server_processes(fault.target)
            for one in everything:
                with suppress(psutil.NoSuchProcess):
                    one.kill()
            psutil.wait_procs(everything, timeout=5)
            self._away(fault, note)
            server.start()
            return
        target = self._process(fault)
        target.kill()

    def _process(self, fault: Fault) -> psutil.Process:
        name, _, one_of = fault.target.partition("-")
        found = self.stack.child(name)
        if found is None:
            raise LookupError(f"{name} is not running")
        children = found.children() if one_of else []
        return children[int(fault.choice * len(children))] if children else found

    def freeze(self, fault: Fault, note: dict[str, Any]) -> None:
        server = fault.target in SERVERS
        if server:
            frozen = self.stack.server_processes(fault.target)
        else:
            main = self._process(fault)
            frozen = [main, *main.children(recursive=True)]
        try:
            for one in frozen:
                with suppress(psutil.NoSuchProcess):
                    one.suspend()
            if server:
                self._away(fault, note)
            else:
                self.over.wait(fault.seconds)
        finally:
            for one in frozen:
                with suppress(psutil.NoSuchProcess):
                    one.resume()

    def cut(self, fault: Fault, note: dict[str, Any]) -> None:
        link = self.stack.links[fault.target]
        link.stop()
        self._away(fault, note)
        link.start()

    def hole(self, fault: Fault, note: dict[str, Any]) -> None:
        process = self.stack.links[fault.target].process
        assert process is not None
        process.send_signal(signal.SIGSTOP)
        try:
            self._away(fault, note)
        finally:
            process.send_signal(signal.SIGCONT)

    def full(self, fault: Fault, note: dict[str, Any]) -> None:
        """No file can grow: what a full disk does to a server, without filling one that others use."""
        server = self.stack.server(fault.target)
        try:
            self._limit_files(fault.target, "1")
            self.over.wait(fault.seconds)
        finally:
            self._limit_files(fault.target, "unlimited")
        time.sleep(0.5)
        if not server.alive():
            server.start()

    def _limit_files(self, target: str, most: str) -> None:
        """The soft limit of the size of files. As the server's own account: root may lack the right to do it to others,
        and PostgreSQL does not run as root."""
        for one in self.stack.server_processes(target):
            with suppress(psutil.NoSuchProcess):
                account = (
                    {"user": one.uids().real, "group": one.gids().real, "extra_groups": []} if os.getuid() == 0 else {}
                )
                command = ["prlimit", f"--pid={one.pid}", f"--fsize={most}:"]
                done = subprocess.run(command, capture_output=True, text=True, check=False, **account)
                if done.returncode and one.is_running():
                    raise OSError(done.stderr.strip())

    def slow(self, fault: Fault, note: dict[str, Any]) -> None:
        edge = Edge(self.stack.stack.port, self.stack.demo)
        with ExitStack() as opened:
            opened.enter_context(sockets(edge, 150, lambda: b""))
            opened.enter_context(sockets(edge, 100, lambda: edge.head("Content-Length: 500")))
            self.over.wait(fault.seconds)

    def heal(self) -> None:
        """After the last fault: whatever is still down is started."""
        for name in SERVERS:
            if not self.stack.server(name).alive():
                self.stack.server(name).start()
            process = self.stack.links[name].process
            if process is None or process.poll() is not None:
                self.stack.links[name].start()
