"""The connection to Valkey. Short timeouts: whoever needs an answer from it fails closed without one."""

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
    """One pooled client per process; it reconnects by itself."""
    return redis.Redis.from_url(
        valkey_url(),
        socket_timeout=2,
        socket_connect_timeout=2,
        decode_responses=True,
        max_connections=64,
    )


# Lines to Valkey that nobody uses now. redis-py's own pool costs more than the answer, request by request.
_idle: deque[Any] = deque()


def valkey_command(*words: str) -> Any:
    """One command, all of whose words are ASCII. A line that broke while it was idle is replaced, once."""
    command = f"*{len(words)}\r\n" + "".join(f"${len(word)}\r\n{word}\r\n" for word in words)
    line = _line()
    try:
        answer = _exchange(line, command)
    except RedisConnectionError:
        answer = _exchange(line, command)
    except ResponseError:  # an answer like any other: the line is as good as before
        _idle.append(line)
        raise
    _idle.append(line)
    return answer


def _line() -> Any:
    """redis-py's connection: it signs in and reconnects by itself. One of another process or address is let go."""
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
    """After an error that leaves an answer unread, redis-py hangs up."""
    line.send_packed_command([command.encode("ascii")], check_health=False)
    return line.read_response()
