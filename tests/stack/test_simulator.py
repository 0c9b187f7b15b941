"""Thirty cases in a running stack, answered by the simulated modules on the streams, with failures, repetitions and a
kill -9."""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from config.embedded.paths import PROJECT
from tests.stack.homes import seasoned_stack
from tests.stack.support import RunningStack, processes_of, wait_for

pytestmark = [pytest.mark.stack, pytest.mark.timeout(600)]

CASES = 30
UNRULY = {
    "HOLDPOINT_MODULES_LATENCY": "30",
    "HOLDPOINT_MODULES_FAILURE_RATE": "0.15",
    "HOLDPOINT_MODULES_RETRYABLE_SHARE": "0.6",
    "HOLDPOINT_MODULES_DUPLICATE_RATE": "0.4",
    "HOLDPOINT_MODULES_REORDER_RATE": "0.3",
    "HOLDPOINT_MODULES_SEED": "7",
    "HOLDPOINT_MODULES_VIA": "stream",
}


@pytest.fixture(scope="module")
def stack(seasoned_home: Path) -> Iterator[RunningStack]:
    with seasoned_stack(seasoned_home, **UNRULY) as running:
        yield running


class Cases:
    """What a clinic sees of its cases, through the API."""

    def __init__(self, stack: RunningStack, facts: dict[str, Any]) -> None:
        self.url = f"{stack.base_url}/api/v1"
        self.headers = {"Authorization": f"Bearer {facts['keys']['workflows']}"}
        self.example = facts["event_example"]
        self.ids: set[str] = set()

    def create(self) -> None:
        fresh = {name: str(uuid4()) for name in ("event_id", "correlation_id", "case_id")}
        answer = httpx.post(f"{self.url}/events", json=self.example | fresh, headers=self.headers, timeout=40)
        assert answer.status_code == 202, answer.text
        self.ids.add(fresh["case_id"])

    def all(self) -> list[dict[str, Any]]:
        answer = httpx.get(
            f"{self.url}/workflow-instances", params={"page_size": 200}, headers=self.headers, timeout=40
        )
        assert answer.status_code == 200, answer.text
        return [row for row in answer.json()["results"] if row["case_id"] in self.ids]

    def statuses(self) -> Counter[str]:
        return Counter(row["status"] for row in self.all())

    def none_of(self, *statuses: str) -> bool:
        found = self.statuses()
        return found.total() == len(self.ids) and not any(found[status] for status in statuses)


def modules_pid(stack: RunningStack) -> int:
    return next(int(one.pid) for one in processes_of(stack.home) if one.name() == "hp-modules")


def test_thirty_cases_end_though_modules_fail_repeat_themselves_and_are_killed(stack: RunningStack) -> None:
    facts = stack.demo
    cases = Cases(stack, facts)
    for _ in range(CASES):
        cases.create()
    os.kill(modules_pid(stack), signal.SIGKILL)
    wait_for(lambda: "modules runs again" in stack.text, seconds=60, what="the modules again")
    wait_for(lambda: cases.none_of("queued", "running"), seconds=240, what=f"settled: {cases.statuses()}")
    waiting = cases.statuses()["waiting_approval"]
    assert waiting, "with this seed some answers are of low confidence"

    person = facts["users"]["reviewer"]
    reviewers = subprocess.Popen(
        [sys.executable, "manage.py", "simulate_modules", "--reviewers", "--modules=human-review"],
        cwd=PROJECT,
        env=stack.environment(
            HOLDPOINT_MODULES_URL=stack.base_url,
            HOLDPOINT_MODULES_KEY=facts["keys"]["workflows"],
            HOLDPOINT_MODULES_ORGANIZATION=facts["organization"]["id"],
            HOLDPOINT_MODULES_REVIEWER=person["username"],
            HOLDPOINT_MODULES_REVIEWER_PASSWORD=person["password"],
        ),
        stderr=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    try:
        wait_for(
            lambda: cases.none_of("queued", "running", "waiting_approval"),
            seconds=120,
            what=f"decided: {cases.statuses()}",
        )
    finally:
        reviewers.terminate()
        assert reviewers.wait(timeout=20) == 0

    ended = cases.all()
    assert {row["status"] for row in ended} == {"completed", "halted"}
    assert all(row["halt_reason"] for row in ended if row["status"] == "halted")
    assert sum(row["status"] == "completed" for row in ended) >= waiting
    said = json.loads(stack.manage("replay_instance", "--all", "--json"))
    assert said["differing"] == []
    assert said["instances"] >= CASES
