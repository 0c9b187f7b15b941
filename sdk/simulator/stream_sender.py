"""Sends answers as signed messages on the streams, for Holdpoint's event consumer. There is no reply: "taken" means
only that the message is in its stream."""

import json
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

from governance.people.rules.keys import prefix_of, stream_sign
from sdk.simulator.streams import PREFIX
from sdk.simulator.web import SendResult


class StreamSender:
    def __init__(self, *, url: str, key: str) -> None:
        self.key = key
        self.client = redis.Redis.from_url(url, socket_timeout=5, socket_connect_timeout=2, retry=Retry(NoBackoff(), 0))

    def send(self, envelope: dict[str, Any]) -> SendResult:
        data = json.dumps(envelope, separators=(",", ":"))
        signature = stream_sign(secret=self.key, data=data.encode())
        fields: dict[Any, Any] = {"data": data, "key": prefix_of(self.key), "signature": signature}
        try:
            self.client.xadd(PREFIX + envelope["event_type"], fields)
        except RedisError:
            return SendResult(taken=False, final=False)
        return SendResult(taken=True, final=True)

    def close(self) -> None:
        self.client.close()
