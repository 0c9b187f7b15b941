"""`python -m config.supervisor.forked`: loads the application, then forks one process for each request.

The side that sends the requests is forkserver.py. What the processes run is in programs.py.
"""

import contextlib
import gc
import json
import os
import signal
import socket
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from config.supervisor.prctl import end_with_parent, name_process
from config.supervisor.programs import PROGRAMS, load, refuse_unless_forkable


@dataclass(frozen=True, kw_only=True)
class ForkedJob:
    """A request of the supervisor. `outputs` are the files for standard output and standard error."""

    name: str
    arguments: Sequence[str]
    environment: dict[str, str]
    outputs: Sequence[int]

    def become(self, *, parent: int) -> None:
        """In the forked process: detaches it, so that it behaves as if it had been started on its own."""
        os.setsid()
        end_with_parent()
        if os.getppid() != parent:  # the parent ended before prctl was called, so no signal would come
            sys.exit(1)
        name_process(f"hp-{self.name}")
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for target, source in zip((1, 2), self.outputs, strict=True):
            os.dup2(source, target)
            os.close(source)
        os.environ.update(self.environment)

    def run(self) -> None:
        program, *arguments = self.arguments
        PROGRAMS[program](arguments)


def receive(control: socket.socket) -> ForkedJob | None:
    """The next request: a line of JSON with two open files. None if the supervisor is gone."""
    text, outputs = b"", list[int]()
    while not text.endswith(b"\n"):
        part, files, _, _ = socket.recv_fds(control, 65536, 2)
        if not part:
            return None
        text += part
        outputs += files
    return ForkedJob(**json.loads(text), outputs=outputs)


def _fork_as_asked(control: socket.socket) -> ForkedJob | None:
    """Forks for each request. Returns the job in the forked process, and None in this process at its end."""
    here = os.getpid()
    while (job := receive(control)) is not None:
        try:
            pid = os.fork()
        except OSError as error:
            answer = f"0 {error.strerror}\n"
        else:
            if pid == 0:
                control.close()
                job.become(parent=here)
                return job
            answer = f"{pid}\n"
        for file in job.outputs:
            os.close(file)
        control.sendall(answer.encode())
    return None


def main() -> None:
    """A forked process returns from `_fork_as_asked`, runs its program and ends like any program."""
    control = socket.socket(fileno=int(sys.argv[1]))
    load()
    refuse_unless_forkable()
    gc.freeze()  # the collector would write to every shared page, and the kernel would copy it for each process
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the children here, so the kernel reaps them
    with contextlib.suppress(BrokenPipeError):
        job = _fork_as_asked(control)
    if job is not None:
        job.run()


if __name__ == "__main__":
    main()
