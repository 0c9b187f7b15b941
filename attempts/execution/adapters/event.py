"""Adds an event to a Valkey stream, for a program that deduplicates on `event_id`."""

import json
from functools import cache

import redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError, ResponseError
from redis.retry import Retry

from attempts.execution.adapters.base import AdapterCall, Outcome, failure, success, unknown
from governance.outside.configured import valkey_url

STREAM = "holdpoint:events:"
RETRYABLE_ANSWERS = ("LOADING", "READONLY", "BUSY", "OOM", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN")


class EventAdapter:
    name = "event"
    effect = "idempotent"
    retryable: tuple[str, ...] = ("server not reachable", *RETRYABLE_ANSWERS)

    def receiver(self, route: str) -> str:
        return "streams"

    def call(self, call: AdapterCall) -> Outcome:
        client = stream_client()
        # First a command without effect: if the server is not reachable, nothing was sent and a retry is safe. The same
        # error from XADD would be an unknown outcome.
        try:
            client.ping()
        except RedisError:
            return failure("no_connection", retryable=True)
        try:
            fields = {"event_id": call.effect_key, "data": json.dumps(call.document(), separators=(",", ":"))}
            entry = client.xadd(STREAM + call.operation, fields)  # type: ignore[arg-type]
        except ResponseError as error:
            return failure("refused", retryable=answer_code(error) in RETRYABLE_ANSWERS)
        except RedisError:
            return unknown("connection")
        return success(stream_entry=str(entry))


def answer_code(error: ResponseError) -> str:
    """The code of the server's error. The client removes codes that it knows from the message."""
    return getattr(error, "status_code", None) or str(error).partition(" ")[0]


@cache
def stream_client() -> "redis.Redis":
    """A client of its own, without retries."""
    # The library repeats a command after a lost connection by default, and the event would be added twice.
    return redis.Redis.from_url(
        valkey_url(),
        socket_timeout=5,
        socket_connect_timeout=2,
        decode_responses=True,
        retry=Retry(NoBackoff(), 0),
    )
