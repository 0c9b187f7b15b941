"""The connection to Valkey. Short timeouts: whoever needs an answer from it fails closed without one."""

from functools import cache

import redis
from django.conf import settings


@cache
def valkey() -> "redis.Redis":
    """One pooled client per process; it reconnects by itself."""
    return redis.Redis.from_url(
        settings.REDIS_URL,
        socket_timeout=2,
        socket_connect_timeout=2,
        decode_responses=True,
        max_connections=64,
    )
