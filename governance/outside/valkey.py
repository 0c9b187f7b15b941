"""Connections to Valkey: redis-py's client, and `valkey_command`, the fast way for single commands."""

import os
from collections import deque
from contextlib import suppress
from functools import cache
from typing import Any

import redis
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import ResponseError

from governance.outside.configured import valkey_url


@cache
def valkey() -> "redis.Redis":
    """One client with a pool per process; it reconnects by itself."""
    # Two seconds: a request waits for the throttles' answer, and is denied without one. A Valkey that does not answer
    # must not occupy all web threads.
    return redis.Redis.from_url(
        valkey_url(),
        socket_timeout=2,
        socket_connect_timeout=2,
        decode_responses=True,
        max_connections=64,
    )


# Connections that are not in use. redis-py's own pool costs more than the command. A deque, because its `append` and
# `pop` are safe between threads without a lock.
_idle: deque[Any] = deque()


def valkey_command(*words: str) -> Any:
    """Send one command, whose words must be ASCII, and return its answer."""
    # Lengths are those of the text: with other letters than ASCII they would not be the number of bytes.
    command = f"*{len(words)}\r\n" + "".join(f"${len(word)}\r\n{word}\r\n" for word in words)
    line = _line()
    try:
        answer = _exchange(line, command)
    except RedisConnectionError:
        # Valkey closes connections that were idle, or was restarted: once more, on a new connection.
        answer = _exchange(line, command)
    except ResponseError:  # an answer too: the connection is still usable
        _idle.append(line)
        raise
    # After any other error the connection is dropped: a late answer would be read as that of the next command.
    _idle.append(line)
    return answer


def _line() -> Any:
    """An idle connection, or a new one. It is redis-py's own, which signs in and reconnects by itself."""
    # After a fork both processes have the same sockets; using one in both would mix the answers. And a new client
    # (another address, in tests) has a new pool.
    pool = valkey().connection_pool
    with suppress(IndexError):
        while True:
            line = _idle.pop()
            if line.pid == os.getpid() and line.of is pool:
                return line
    line = pool.connection_class(**pool.connection_kwargs)
    line.of = pool
    return line


def _exchange(line: Any, command: str) -> Any:
    # No health check: it would be a second round trip before the command.
    line.send_packed_command([command.encode("ascii")], check_health=False)
    return line.read_response()
