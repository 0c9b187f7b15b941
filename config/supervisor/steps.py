"""Work that must be done before Holdpoint is ready, each in a process of its own that ends."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from config.embedded.paths import PROJECT, StackPaths
from config.embedded.processes import last_lines, rotate_log
from config.supervisor.children import MARK, end_with_parent
from config.supervisor.errors import StartError
from config.supervisor.servers import Servers
from config.supervisor.stopping import StopFlag

SECONDS_FOR_A_STEP = 300


class Step:
    """A command that is running; `finish` waits for it."""

    def __init__(self, *, name: str, arguments: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
        self.name = name
        self.log = log
        rotate_log(log)
        self._output: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by stop()
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                [sys.executable, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=errors,
                cwd=PROJECT,
                env={**environment, MARK: name},
                start_new_session=True,
                preexec_fn=end_with_parent,
            )

    def finish(self, *, stop: StopFlag) -> str:
        """Wait for the end; what it printed. A failure becomes one line that names the log."""
        if not stop.wait_until(lambda: self._process.poll() is not None, seconds=SECONDS_FOR_A_STEP):
            raise StartError(f"The step `{self.name}` takes longer than {SECONDS_FOR_A_STEP} s; see {self.log}.")
        if self._process.returncode:
            raise StartError(f"The step `{self.name}` failed: {last_lines(self.log, count=1)} (see {self.log})")
        self._output.seek(0)
        return self._output.read().decode()

    def stop(self) -> None:
        """End it if it still runs."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._output.close()


def start_migration(*, paths: StackPaths, servers: Servers, environment: Mapping[str, str]) -> Step:
    """Migrate and hand out rights as the owner of the tables, in one Python start."""
    return Step(
        name="migrate",
        arguments=["-m", "config.supervisor.prepare"],
        environment={
            **environment,
            "DATABASE_URL": servers.database_owner_url,
            "HOLDPOINT_APP_ROLE": servers.application_role,
        },
        log=paths.logs / "migrate.log",
    )


def start_demo(*, paths: StackPaths, environment: Mapping[str, str]) -> Step:
    """Seed the demo organization, as the application's role."""
    return Step(
        name="demo",
        arguments=["manage.py", "demo", "--json"],
        environment=environment,
        log=paths.logs / "demo.log",
    )


def read_demo(output: str) -> dict[str, Any]:
    """The one JSON object that the demo command prints."""
    try:
        found = json.loads(output)
    except ValueError as error:
        raise StartError("The step `demo` did not print one JSON object.") from error
    return dict(found)
