"""What Linux's kernel does for a process that asks. Elsewhere nothing: the next start tidies up, names stay."""

import ctypes
import signal
import sys

PR_SET_PDEATHSIG = 1
PR_SET_NAME = 15


def end_with_parent() -> None:
    """In a new process: have the kernel end it when the one that made it ends, also by kill -9."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def name_process(name: str) -> None:
    """What `ps -e`, `top` and `pgrep` show; the kernel keeps 15 bytes."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_NAME, name.encode())
