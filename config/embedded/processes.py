"""Find, start and stop processes of one stack. One is ours by what it carries, never by a number alone."""

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
    """Whether the very process that was found still runs; a zombie and a reused pid do not count."""
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def find_processes(belongs: Callable[[psutil.Process], bool]) -> list[psutil.Process]:
    """All living processes for which `belongs` holds; those that we may not look into are not ours."""
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
    """Poll `condition` for at most `seconds`; whether it came true."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() >= deadline:
            return False
        time.sleep(POLL_SECONDS)
    return True


def send_signal(process: psutil.Process, number: int) -> None:
    """Signal a process that may have ended meanwhile."""
    with contextlib.suppress(psutil.NoSuchProcess, ProcessLookupError):
        process.send_signal(number)


def stop_processes(processes: Iterable[psutil.Process], *, steps: Sequence[tuple[int, float]]) -> bool:
    """Send each signal in `steps` and wait its seconds until all have ended; sleepers (SIGSTOP) are woken."""
    remaining = list(processes)
    for number, seconds in steps:
        for process in remaining:
            send_signal(process, number)
            send_signal(process, signal.SIGCONT)
        if wait_until(lambda: not any(map(is_alive, remaining)), seconds=seconds):
            return True
    return not any(map(is_alive, remaining))


def spawn(command: Sequence[str], *, log: Path, **options: Any) -> "subprocess.Popen[bytes]":
    """Start `command` in its own session, so that Ctrl-C reaches only us; its output goes to `log`."""
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
    """Keep the previous run's log as `.1`."""
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
    """Why a Python program ended: the exception under the traceback, which is not indented, for an error message."""
    try:
        lines = log.read_text(errors="replace").splitlines()
    except OSError:
        return ""
    return next((line.strip() for line in reversed(lines) if line.strip() and not line[0].isspace()), "")
