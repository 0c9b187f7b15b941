"""Find, start and stop processes of one stack. A process is ours by its environment, arguments or folder, never by its
number alone."""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import psutil

POLL_SECONDS = 0.05


def is_alive(process: psutil.Process) -> bool:
    """Whether exactly the process that was found still runs. A zombie or a reused pid does not count."""
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def find_processes(belongs: Callable[[psutil.Process], bool]) -> list[psutil.Process]:
    """All living processes for which `belongs` is true. Those that we may not inspect are not ours."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.pid != os.getpid() and belongs(process) and is_alive(process):
                found.append(process)
    return found


def program_with_argument(process: psutil.Process, *, program: str, argument: str) -> bool:
    """Whether `process` runs `program` with exactly `argument` in its command line."""
    try:
        words = process.cmdline()
    except (psutil.Error, OSError):
        return False
    return bool(words) and Path(words[0]).name == program and argument in words[1:]


def wait_until(condition: Callable[[], bool], *, seconds: float) -> bool:
    """Polls `condition` for at most `seconds`; returns whether it became true."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() >= deadline:
            return False
        time.sleep(POLL_SECONDS)
    return True


def send_signal(process: psutil.Process, number: int) -> None:
    """Signals a process that may have ended meanwhile."""
    with contextlib.suppress(psutil.NoSuchProcess, ProcessLookupError):
        process.send_signal(number)


def stop_processes(processes: Iterable[psutil.Process], *, steps: Sequence[tuple[int, float]]) -> bool:
    """Sends each signal in `steps` and waits its seconds until all processes have ended."""
    remaining = list(processes)
    for number, seconds in steps:
        for process in remaining:
            send_signal(process, number)
            # A process stopped by SIGSTOP would not handle the signal until it continues.
            send_signal(process, signal.SIGCONT)
        if wait_until(lambda: not any(map(is_alive, remaining)), seconds=seconds):
            return True
    return not any(map(is_alive, remaining))


def spawn(command: Sequence[str], *, log: Path, **options: Any) -> "subprocess.Popen[bytes]":
    """Starts `command` in its own session, so that Ctrl-C reaches only us. Its output goes to `log`."""
    with log.open("ab") as output:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            **options,
        )


def rotate_log(log: Path) -> None:
    """Keeps the log of the previous run as `.1`."""
    with contextlib.suppress(FileNotFoundError):
        log.replace(log.with_name(log.name + ".1"))


def last_lines(log: Path, *, count: int = 3) -> str:
    """The end of a log as one line, for an error message."""
    try:
        lines = log.read_text(errors="replace").splitlines()
    except OSError:
        return ""
    return " | ".join(line.strip() for line in lines[-count:])


def last_words(log: Path) -> str:
    """Why a Python program ended: the last line of the traceback that is not indented, for an error message."""
    try:
        lines = log.read_text(errors="replace").splitlines()
    except OSError:
        return ""
    return next((line.strip() for line in reversed(lines) if line.strip() and not line[0].isspace()), "")
