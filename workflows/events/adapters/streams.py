"""The streams in Valkey: one per event type, read by consumer groups. Transport only; it decides nothing about
messages.

Every call may raise RedisError: the caller tries again later, or refuses.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any

import redis
import structlog
from prometheus_client import Counter
from redis.backoff import NoBackoff
from redis.exceptions import ResponseError
from redis.retry import Retry

from attempts.execution.adapters.event import STREAM
from governance.outside.configured import valkey_url
from workflows.events.rules import event_types

log = structlog.get_logger("holdpoint.streams")
EXPIRED = Counter("holdpoint_stream_expired_total", "Messages that were trimmed before anybody finished with them.")
GROUP = "holdpoint"
DATA, KEY, SIGNATURE = "data", "key", "signature"
# A consumer that is silent for a day is gone: one at work asks every few seconds.
FORGOTTEN_MS = 24 * 3600 * 1000
# One script, because it must be atomic: DELCONSUMER also drops the consumer's pending messages, which would be lost if
# it read one between the check and the deletion.
FORGET = """
local gone = 0
for _, one in ipairs(redis.call('XINFO', 'CONSUMERS', KEYS[1], ARGV[1])) do
    local facts = {}
    for i = 1, #one, 2 do facts[one[i]] = one[i + 1] end
    if facts['pending'] == 0 and facts['idle'] > tonumber(ARGV[2]) then
        redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], facts['name'])
        gone = gone + 1
    end
end
return gone
"""


@dataclass(frozen=True, slots=True)
class StreamMessage:
    """One delivery of a stream's entry. `deliveries` counts this one."""

    event_type: str
    entry_id: str
    fields: Mapping[str, str]
    deliveries: int = 1

    @property
    def data(self) -> bytes:
        """The exact bytes: the signature is over them."""
        return self.fields.get(DATA, "").encode("utf-8", "surrogateescape")

    @property
    def written_at(self) -> float:
        """By Valkey's clock, which creates the entry ids."""
        return int(self.entry_id.partition("-")[0]) / 1000


@dataclass(frozen=True, slots=True)
class GroupStanding:
    """How far a group has read. `lag` is None if Valkey cannot tell, because entries in between were deleted."""

    event_type: str
    group: str
    lag: int | None
    pending: int
    consumers: int


@cache
def message_client() -> "redis.Redis":
    """The client for reading messages."""
    # No retries: a command that is repeated silently could read a second batch of messages, and lose track of the
    # first. surrogateescape: bytes that are no UTF-8 come back unchanged, so that a message's hash and signature stay
    # right.
    return redis.Redis.from_url(
        valkey_url(),
        socket_timeout=5,
        socket_connect_timeout=2,
        decode_responses=True,
        encoding_errors="surrogateescape",
        retry=Retry(NoBackoff(), 0),
    )


def stream_of(event_type: str) -> str:
    return STREAM + event_type


def inbound_types() -> list[str]:
    """The event types that modules send."""
    return sorted({one.name for one in event_types() if one.direction == "in"})


class Inbox:
    """The inbound streams, as one consumer of our group sees them."""

    def __init__(self, *, consumer: str, claim_after_ms: int, more: Callable[[], list[str]] | None = None) -> None:
        """`more`: event types that are in no catalogue, because people register them."""
        self.more = more
        self.types = inbound_types()
        self.names = {stream_of(name): name for name in self.types}
        self.consumer = consumer
        self.claim_after_ms = claim_after_ms

    @property
    def client(self) -> Any:
        return message_client()

    def follow(self) -> None:
        """Read the streams too of what was registered since."""
        found = set(self.more()) - set(self.types) if self.more else set()
        if found:
            self.types = sorted({*self.types, *found})
            self.names = {stream_of(name): name for name in self.types}
            self._create([stream_of(name) for name in sorted(found)])

    def prepare(self) -> None:
        """Create the streams and our group."""
        self._create(list(self.names))

    def _create(self, streams: Sequence[str]) -> None:
        # From the beginning (0 and not $): messages that were sent before the first start, or before Valkey lost its
        # data, are read too. The event ids keep them from being processed twice.
        for stream in streams:
            try:
                self.client.xgroup_create(stream, GROUP, id="0", mkstream=True)
            except ResponseError as error:
                if not str(error).startswith("BUSYGROUP"):  # the group exists already
                    raise

    def read(self, *, count: int, block_ms: int) -> list[StreamMessage]:
        """New messages, oldest first within each stream."""
        found = self.client.xreadgroup(
            GROUP, self.consumer, dict.fromkeys(self.names, ">"), count=count, block=block_ms
        )
        return [StreamMessage(self.names[stream], id_, fields) for stream, rows in found or () for id_, fields in rows]

    def claim(self) -> Iterator[StreamMessage]:
        """Messages that a consumer read and did not finish in time."""
        # One by one: if a message kills its consumer, only that one's delivery count grows, and not that of all that
        # were claimed together.
        for stream in self._with_pending():
            cursor = "0-0"
            while True:
                cursor, found, deleted = self.client.xautoclaim(
                    stream, GROUP, self.consumer, min_idle_time=self.claim_after_ms, start_id=cursor, count=1
                )
                for id_, fields in found:
                    times = self.client.xpending_range(stream, GROUP, id_, id_, 1)
                    yield StreamMessage(self.names[stream], id_, fields, times[0]["times_delivered"] if times else 1)
                if deleted:  # read, never finished, and now older than streams are kept
                    log.error("messages_expired", event_type=self.names[stream], entries=len(deleted))
                    EXPIRED.inc(len(deleted))
                if cursor == "0-0":
                    break

    def _with_pending(self) -> list[str]:
        pipe = self.client.pipeline(transaction=False)
        for stream in self.names:
            pipe.xpending(stream, GROUP)
        return [stream for stream, summary in zip(self.names, pipe.execute(), strict=True) if summary["pending"]]

    def acknowledge(self, message: StreamMessage) -> None:
        self.client.xack(stream_of(message.event_type), GROUP, message.entry_id)

    def give_back(self, messages: Sequence[StreamMessage]) -> None:
        """Return messages that were read and not started."""
        # `idle` makes them claimable at once; JUSTID keeps the delivery count, because nobody tried them.
        for one in messages:
            self.client.xclaim(
                stream_of(one.event_type),
                GROUP,
                self.consumer,
                min_idle_time=0,
                message_ids=[one.entry_id],
                idle=self.claim_after_ms,
                justid=True,
            )


def message_read(*, event_type: str, entry_id: str) -> StreamMessage | None:
    """An entry that is still in its stream."""
    client: Any = message_client()
    found = client.xrange(stream_of(event_type), min=entry_id, max=entry_id, count=1)
    return StreamMessage(event_type, entry_id, found[0][1]) if found else None


def group_standings() -> list[GroupStanding]:
    """Of every group of every stream in the catalogue, in one round trip. Streams that do not exist are left out."""
    names = sorted({one.name for one in event_types()})
    pipe: Any = message_client().pipeline(transaction=False)
    for name in names:
        pipe.xinfo_groups(stream_of(name))
    found: list[GroupStanding] = []
    for name, answer in zip(names, pipe.execute(raise_on_error=False), strict=True):
        if isinstance(answer, ResponseError):  # no such stream yet
            continue
        if isinstance(answer, Exception):
            raise answer
        found += [GroupStanding(name, one["name"], one["lag"], one["pending"], one["consumers"]) for one in answer]
    return found


def consumer_idle_ms() -> int | None:
    """How long ago any consumer of ours last asked for something; None when there never was one."""
    pipe: Any = message_client().pipeline(transaction=False)
    for name in inbound_types():
        pipe.xinfo_consumers(stream_of(name), GROUP)
    answers = [one for one in pipe.execute(raise_on_error=False) if isinstance(one, list)]
    return min((consumer["idle"] for one in answers for consumer in one), default=None)


def streams_tidy(*, max_age_ms: int) -> int:
    """Remove older entries, read or not, and return how many. Our group also forgets consumers that are long gone."""
    # By Valkey's own clock, which creates the ids: a worker whose clock is wrong by days would empty the streams.
    client: Any = message_client()
    seconds, micros = client.time()
    oldest = seconds * 1000 + micros // 1000 - max_age_ms
    removed = 0
    for stream in client.scan_iter(match=STREAM + "*", count=1000, _type="stream"):
        while part := client.xtrim(stream, minid=oldest, approximate=True):
            removed += part
        removed += client.xtrim(stream, minid=oldest, approximate=False)
    for name in inbound_types():
        with suppress(ResponseError):  # nobody has read it yet
            client.eval(FORGET, 1, stream_of(name), GROUP, FORGOTTEN_MS)
    return removed
