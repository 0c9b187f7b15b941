"""Looks up names with a time limit. The system's own look-up has none that we could set, and cannot be interrupted."""

import socket
import threading
from dataclasses import dataclass, field
from typing import Any

# Look-ups that have not come back, in a process. Each keeps a thread until the system gives up.
MOST_UNDER_WAY = 64


class NameNotFoundInTime(TimeoutError):
    """The look-up takes longer than the caller can wait, or too many others hang."""


@dataclass
class _LookUp:
    done: threading.Event = field(default_factory=threading.Event)
    addresses: list[str] = field(default_factory=list)
    error: BaseException | None = None


_lock = threading.Lock()
_under_way: dict[tuple[str, int], _LookUp] = {}


def addresses_of(host: str, port: int, *, seconds: float) -> list[str]:
    """The addresses of a host. OSError or UnicodeError as the system's look-up raises them."""
    one = _begun(host, port)
    if not one.done.wait(seconds):
        raise NameNotFoundInTime
    if one.error is not None:
        raise one.error
    return one.addresses


def _begun(host: str, port: int) -> _LookUp:
    """The look-up of this name that is under way, or a new one: a name that hangs keeps one thread, however often it
    is asked for."""
    with _lock:
        if (known := _under_way.get((host, port))) is not None:
            return known
        if len(_under_way) >= MOST_UNDER_WAY:
            raise NameNotFoundInTime
        one = _LookUp()
        # A daemon: a look-up that hangs does not keep the process from ending.
        thread = threading.Thread(target=_look_up, args=(host, port, one), name="look-up", daemon=True)
        # Before it is in the table: what did not start must not stand there for ever. Its thread waits for the lock.
        thread.start()
        _under_way[host, port] = one
    return one


def _look_up(host: str, port: int, one: _LookUp) -> None:
    try:
        found: list[Any] = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        one.addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
    except BaseException as error:  # whatever it is, the caller gets it
        one.error = error
    finally:
        # First out of the table: whoever asks from now on asks anew.
        with _lock:
            _under_way.pop((host, port), None)
        one.done.set()
