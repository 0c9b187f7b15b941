"""Requests to Linux's kernel about the current process. On other systems nothing happens: the next start ends
leftovers."""

import ctypes
import signal
import sys

PR_SET_PDEATHSIG = 1
PR_SET_NAME = 15


def end_with_parent() -> None:
    """In a new process: the kernel ends it when its parent ends, also by kill -9."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def name_process(name: str) -> None:
    """The name in `ps -e`, `top` and `pgrep`; the kernel keeps 15 bytes."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_NAME, name.encode())
