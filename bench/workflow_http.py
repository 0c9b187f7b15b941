"""Workflow runs from start to end through `POST /api/v1/events`, by keep-alive clients with one case at a time."""

import http.client
import json
import threading
import time
from typing import Any
from uuid import UUID, uuid4, uuid5

import psycopg

from bench.gang import percentiles
from bench.load import counters
from bench.workflow_flows import PARTS, STEPS, events

CLIENTS = 8


class HttpRuns:
    def __init__(self, *, port: int, flow: str, where: dict[str, str], key: str) -> None:
        self.port, self.flow, self.where = port, flow, where
        self.headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}
        self.times: dict[str, list[float]] = {part: [] for part in PARTS}
        self.refused: list[str] = []

    def measure(self, *, runs: int, database: psycopg.Connection[Any]) -> dict[str, Any]:
        numbers = iter(range(runs))
        threads = [threading.Thread(target=self._client, args=[numbers]) for _ in range(CLIENTS)]
        before, began = counters(database), time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        seconds, after = time.perf_counter() - began, counters(database)
        if self.refused:
            raise RuntimeError(f"{len(self.refused)} runs did not go as planned: {self.refused[0]}")
        return {
            "runs_per_s": round(runs / seconds, 1),
            "steps_per_s": round(3 * runs / seconds, 1),
            "write_tx_per_run": round((after[0] - before[0]) / runs, 2),
            "wal_bytes_per_run": round((after[1] - before[1]) / runs),
            "step_ms": percentiles(self.times["step"]),
        }

    def _client(self, numbers: Any) -> None:
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        while next(numbers, None) is not None:
            self._carry(link)
        link.close()

    def _carry(self, link: http.client.HTTPConnection) -> None:
        """Sends the four events of one run."""
        # A module would read the correlation id from its request. It can also be computed from the run's id and step.
        case, instance = str(uuid4()), None
        for number, (name, payload) in enumerate(events(self.flow)):
            correlation = uuid5(UUID(instance), f"{STEPS[number - 1]}/1") if instance else uuid4()
            began = time.perf_counter()
            link.request("POST", "/api/v1/events", self._body(name, payload, case, str(correlation)), self.headers)
            answer = link.getresponse()
            said = json.loads(answer.read())
            self.times[PARTS[number]].append(time.perf_counter() - began)
            if answer.status != 202 or said["outcome"] != "advanced":
                self.refused.append(f"{name}: {answer.status} {said.get('outcome')}")
                return
            instance = said["instance_id"]

    def _body(self, name: str, payload: dict[str, Any], case: str, correlation: str) -> str:
        return json.dumps(
            {
                "event_id": str(uuid4()),
                "event_type": name,
                "schema_version": "v1",
                "occurred_at": "2026-11-16T12:00:00Z",
                "correlation_id": correlation,
                "case_id": case,
                "org_id": self.where["organization"],
                "product_id": self.where["product"],
                "payload": payload,
            }
        )
