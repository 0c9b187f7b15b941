"""Work that must be done before Holdpoint is ready, each in a process of its own."""

import json
import signal
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from config.embedded.paths import StackPaths
from config.embedded.processes import is_alive, last_words, rotate_log, stop_processes
from config.supervisor.errors import StartError
from config.supervisor.forkserver import ForkServer
from config.supervisor.servers import Servers
from config.supervisor.stopping import StopFlag

# A migration of a large database takes long; a step that hangs must still end with a message.
SECONDS_FOR_A_STEP = 300


class CommandStep:
    """A running command; `finish` waits for it. Its output is its result: no output means that it failed."""

    def __init__(
        self, *, name: str, arguments: Sequence[str], environment: Mapping[str, str], forkserver: ForkServer, log: Path
    ) -> None:
        self.name = name
        self.log = log
        rotate_log(log)
        self._output: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by stop()
        with log.open("ab") as errors:
            outputs = [self._output.fileno(), errors.fileno()]
            self._process = forkserver.fork(name=name, arguments=arguments, environment=environment, outputs=outputs)

    def running(self) -> bool:
        return self._process is not None and is_alive(self._process)

    def finish(self, *, stop: StopFlag) -> str:
        """Waits for the end and returns the output. A failure becomes one line that names the log."""
        if not stop.wait_until(lambda: not self.running(), seconds=SECONDS_FOR_A_STEP):
            raise StartError(f"The step `{self.name}` takes longer than {SECONDS_FOR_A_STEP} s; see {self.log}.")
        self._output.seek(0)
        printed = self._output.read().decode()
        # The fork server reaps its children, so there is no exit code to read here.
        if not printed:
            raise StartError(f"The step `{self.name}` failed: {last_words(self.log)} (see {self.log})")
        return printed

    def stop(self) -> None:
        """Ends it if it still runs."""
        if self._process is not None:
            stop_processes([self._process], steps=((signal.SIGKILL, 2.0),))
        self._output.close()


def start_migration(*, paths: StackPaths, servers: Servers, forkserver: ForkServer) -> CommandStep:
    """Migrates and grants rights, as the owner of the tables."""
    return CommandStep(
        name="migrate",
        arguments=["prepare"],
        environment={
            "DATABASE_URL": servers.database_owner_url,
            "HOLDPOINT_APP_ROLE": servers.application_role,
        },
        forkserver=forkserver,
        log=paths.logs / "migrate.log",
    )


def start_demo(*, paths: StackPaths, forkserver: ForkServer) -> CommandStep:
    """Seeds the demo organization, as the application's role."""
    return CommandStep(
        name="demo",
        arguments=["manage.py", "demo", "--json"],
        environment={},
        forkserver=forkserver,
        log=paths.logs / "demo.log",
    )


def read_demo(output: str) -> dict[str, Any]:
    """The one JSON object that the demo command prints."""
    try:
        found = json.loads(output)
    except ValueError as error:
        raise StartError("The step `demo` did not print one JSON object.") from error
    return dict(found)
