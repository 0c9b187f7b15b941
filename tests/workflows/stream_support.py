"""Modules that speak by streams only: they sign what they send, answer what they are asked, and repeat themselves."""

import json
import time
from collections import defaultdict
from itertools import pairwise
from typing import Any
from uuid import NAMESPACE_OID, UUID, uuid4, uuid5

from django.utils import timezone
from redis.exceptions import RedisError

from attempts.execution.adapters.event import STREAM
from governance.people.rules.keys import prefix_of, stream_sign
from tests.workflows.running import ANSWERS
from workflows.events.adapters.streams import message_client
from workflows.events.models import OutboxEvent, WorkflowEvent

Published = dict[str, list[tuple[str, str, str]]]  # event id: stream, entry id, data


def signed(secret: str, envelope: Any, **changes: str) -> dict[str, str]:
    """The fields of a message, as docs/events.md says."""
    data = envelope if isinstance(envelope, str) else json.dumps(envelope, separators=(",", ":"))
    return {
        "data": data,
        "key": prefix_of(secret),
        "signature": stream_sign(secret=secret, data=data.encode()),
    } | changes


def put(fields: dict[Any, Any], event_type: str) -> str:
    client: Any = message_client()
    return str(client.xadd(STREAM + event_type, fields))


class Player:
    """The modules of one clinic. Nothing is sent unless it is confirmed; until then it is sent again."""

    def __init__(self, *, secret: str, organization: UUID, product: UUID) -> None:
        self.secret, self.organization, self.product = secret, organization, product
        self.last = {STREAM + name: "0" for name in ANSWERS}
        self.waiting: list[dict[str, Any]] = []
        self.sent: set[str] = set()
        self.repeated = 0

    def create(self) -> UUID:
        case = uuid4()
        self.waiting.append(self._envelope("case.created", {"patient_id": "pat-1"}, str(case), str(uuid4())))
        return case

    def round(self) -> None:
        """Sends what waits and answers what was asked; a Valkey that is away costs a moment."""
        try:
            while self.waiting:
                self._send(self.waiting[0])
                self.waiting.pop(0)
            client: Any = message_client()
            for stream, entries in client.xread(self.last, count=200, block=20) or ():
                for entry_id, fields in entries:
                    self._answer(json.loads(fields["data"]))
                    self.last[stream] = entry_id
        except RedisError:
            time.sleep(0.1)

    def _send(self, envelope: dict[str, Any]) -> None:
        put(signed(self.secret, envelope), envelope["event_type"])
        if int(envelope["event_id"][:2], 16) < 26:  # one in ten is sent twice
            put(signed(self.secret, envelope), envelope["event_type"])
            self.repeated += 1
        self.sent.add(envelope["event_id"])

    def _answer(self, request: dict[str, Any]) -> None:
        name, payload = ANSWERS[request["event_type"]]
        answer = self._envelope(name, payload, request["case_id"], request["correlation_id"])
        self.waiting.append(answer | {"event_id": str(uuid5(NAMESPACE_OID, request["correlation_id"]))})

    def _envelope(self, name: str, payload: Any, case_id: str, correlation: str) -> dict[str, Any]:
        return {
            "event_id": str(uuid4()),
            "event_type": name,
            "schema_version": "v1",
            "occurred_at": timezone.now().isoformat(),
            "correlation_id": correlation,
            "case_id": case_id,
            "org_id": str(self.organization),
            "product_id": str(self.product),
            "payload": payload,
        }


def published(types: list[str]) -> Published:
    client: Any = message_client()
    found: Published = defaultdict(list)
    for name in types:
        for entry_id, fields in client.xrange(STREAM + name):
            found[fields["event_id"]].append((name, entry_id, fields["data"]))
    return found


def findings(player: Player) -> dict[str, int]:
    """What must not be: each a count. In the caller's scope."""
    rows = list(OutboxEvent.objects.values_list("id", "instance_id", "number", "event_type", "status"))
    there = published(sorted({row[3] for row in rows}))
    taken = {str(one) for one in WorkflowEvent.objects.exclude(event_id=None).values_list("event_id", flat=True)}
    return {
        "unsent": sum(row[4] != "sent" for row in rows),
        "lost on the way out": sum(str(row[0]) not in there for row in rows),
        "published and unknown": len(there.keys() - {str(row[0]) for row in rows}),
        "one id with two contents": sum(len({data for _, _, data in copies}) > 1 for copies in there.values()),
        "inverted": inversions(rows, there),
        "lost on the way in": len(player.sent - taken),
    }


def inversions(rows: list[Any], there: Published) -> int:
    """Of every instance: is any copy of an event behind a copy of a later one? Entries of two streams are compared by
    their milliseconds, because the rest of an entry's id counts within its stream only."""
    by_instance: dict[Any, list[tuple[int, str]]] = defaultdict(list)
    for id_, instance_id, number, _, _ in rows:
        by_instance[instance_id].append((number, str(id_)))
    wrong = 0
    for events in by_instance.values():
        ordered = [there[id_] for _, id_ in sorted(events) if id_ in there]
        for earlier, later in pairwise(ordered):
            last = max(int(entry.partition("-")[0]) for _, entry, _ in earlier)
            first = min(int(entry.partition("-")[0]) for _, entry, _ in later)
            wrong += last > first
    return wrong


def repetitions(there: Published) -> int:
    return sum(len(copies) - 1 for copies in there.values())
