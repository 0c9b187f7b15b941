"""The request streams in Valkey, read as a consumer group: a request belongs to one reader until it is acknowledged."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.exceptions import ResponseError
from redis.retry import Retry

PREFIX = "holdpoint:events:"
GROUP = "simulated-modules"
# Longer than any latency in use. An older request belongs to a reader that is gone, or its answer did not arrive.
IDLE_MS = 15_000


@dataclass(frozen=True, slots=True)
class Entry:
    """One delivery of a request. The same request may be delivered again under another id."""

    stream: str
    id: str
    envelope: dict[str, Any] | None  # None: not readable


class Streams:
    """Every call may raise RedisError; the caller waits and tries again."""

    def __init__(self, *, url: str, event_types: Sequence[str], consumer: str, idle_ms: int = IDLE_MS) -> None:
        self.names = [PREFIX + name for name in event_types]
        self.consumer = consumer
        self.idle_ms = idle_ms
        # No retries inside the client: the caller waits and tries again itself.
        self.client = redis.Redis.from_url(
            url, socket_timeout=5, socket_connect_timeout=2, decode_responses=True, retry=Retry(NoBackoff(), 0)
        )

    def prepare(self) -> None:
        """Create the consumer groups that are missing."""
        # From id 0: requests that were sent before the simulator started are answered too.
        for name in self.names:
            try:
                self.client.xgroup_create(name, GROUP, id="0", mkstream=True)
            except ResponseError as error:
                if not str(error).startswith("BUSYGROUP"):
                    raise

    def follow(self, event_types: Sequence[str]) -> bool:
        """Read these streams too. True: there are new ones, whose groups `prepare` makes."""
        new = [PREFIX + name for name in event_types if PREFIX + name not in self.names]
        self.names += new
        return bool(new)

    def read(self, *, count: int, block_ms: int) -> list[Entry]:
        if not self.names:
            return []
        wanted = dict.fromkeys(self.names, ">")
        found: Any = self.client.xreadgroup(GROUP, self.consumer, wanted, count=count, block=block_ms)  # type: ignore[arg-type]
        return [_entry(stream, id_, fields) for stream, rows in found or () for id_, fields in rows]

    def reclaim(self, *, count: int) -> list[Entry]:
        """Take over requests that a reader took and did not acknowledge in time."""
        found: list[Entry] = []
        for name in self.names:
            answer: Any = self.client.xautoclaim(name, GROUP, self.consumer, min_idle_time=self.idle_ms, count=count)
            found += [_entry(name, id_, fields) for id_, fields in answer[1] if fields]
        return found

    def acknowledge(self, entry: Entry) -> None:
        self.client.xack(entry.stream, GROUP, entry.id)

    def close(self) -> None:
        self.client.close()


def _entry(stream: str, id_: str, fields: dict[str, str]) -> Entry:
    try:
        envelope = json.loads(fields["data"])
    except (KeyError, ValueError):
        envelope = None
    return Entry(stream, id_, envelope if isinstance(envelope, dict) else None)
