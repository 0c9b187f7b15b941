"""A receiver that hangs stops nothing of ours, and what the processes say about its attempts names them: on a whole
stack, by its own doors and logs."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from tests.attempts.execution.target import CountingTarget
from tests.stack.homes import seasoned_copy
from tests.stack.support import RunningStack, get, wait_for

pytestmark = [pytest.mark.stack, pytest.mark.timeout(240)]
# Few places, so that a share of the adapters' lane, if it were taken from them, would be all of them.
PLACES = {f"HOLDPOINT_LANE_{lane}": "2" for lane in ("CLOCK", "DISPATCH", "WEBHOOKS", "NOTIFICATIONS", "EVIDENCE")}
CALLS = 12


@pytest.fixture(scope="module")
def receiver() -> Iterator[CountingTarget]:
    found = CountingTarget()
    found.pause = True
    yield found
    found.stop()


@pytest.fixture(scope="module")
def stack(seasoned_home: Path, receiver: CountingTarget) -> Iterator[RunningStack]:
    with seasoned_copy(seasoned_home) as home:
        found = RunningStack(home=home, variables={"HOLDPOINT_DEMO_TARGET": receiver.url, **PLACES})
        found.start()
        yield found
        receiver.release.set()
        if not found.ended:
            assert found.finish() == 0


def ask(stack: RunningStack, receiver: str) -> str:
    """An attempt that a worker of ours executes; its id."""
    route, key = stack.demo["contracts"][receiver], str(uuid4())
    body = stack.demo["attempt_example"] | {"patient_context_ref": f"ctx-{key[:13]}"}
    answer = get(
        f"{stack.base_url}/api/v1/execution/{route['slug']}/{route['version']}/attempts",
        method="POST",
        headers={
            "Authorization": f"Bearer {stack.demo['keys']['caller']}",
            "Content-Type": "application/json",
            "Idempotency-Key": key,
        },
        body=json.dumps(body).encode(),
    )
    assert answer.status == 201, answer.body
    return str(answer.body["id"])


def one(stack: RunningStack, sql: str) -> Any:
    with psycopg.connect(stack.runtime()["database_owner_url"], autocommit=True) as connection:
        row = connection.execute(sql).fetchone()
    assert row is not None
    return row[0]


def test_twelve_calls_to_a_receiver_that_hangs_stop_neither_heartbeat_nor_sealer(
    stack: RunningStack, receiver: CountingTarget
) -> None:
    before = outcomes(stack)
    for _ in range(CALLS):
        ask(stack, "idempotent_http")
    wait_for(lambda: len(receiver.requests) == 2, seconds=30, what="two calls hang")
    beat, size = beats(stack), sealed(stack)
    ask(stack, "idempotent_http")
    wait_for(
        lambda: beats(stack) > beat and sealed(stack) > size, seconds=30, what="a heartbeat, and new entries sealed"
    )
    assert outcomes(stack) == before, "both came while the calls were still hanging"
    assert not receiver.release.is_set()
    ready = stack.ready().body
    assert ready["checks"]["beat"]["status"] == ready["checks"]["sealer"]["status"] == "ok"


def outcomes(stack: RunningStack) -> int:
    return int(one(stack, "SELECT (SELECT count(*) FROM attempts_receipt) + count(*) FROM attempts_quarantinecase"))


def beats(stack: RunningStack) -> Any:
    return one(stack, "SELECT at FROM governance_clockbeat")


def sealed(stack: RunningStack) -> int:
    return int(one(stack, "SELECT coalesce(max(size), 0) FROM governance_ledgercheckpoint"))


def test_lines_of_the_processes_say_which_attempt_and_which_trace(
    stack: RunningStack, receiver: CountingTarget
) -> None:
    """Values instead of templates, and the ids by which one attempt is followed from web to worker."""
    receiver.release.set()
    attempt_id = ask(stack, "idempotent_http")
    wait_for(lambda: state(stack, attempt_id) == "completed", seconds=60, what="executed")
    lines = {name: log_lines(stack, name) for name in ("web", "adapters", "clock", "dispatch", "beat")}
    everything = [line for found in lines.values() for line in found]
    assert everything
    assert [line for line in everything if "%(" in line.get("event", "")] == []
    intake = [line for line in lines["web"] if line.get("attempt_id") == attempt_id and line.get("method") == "POST"]
    done = [line for line in lines["adapters"] if line.get("attempt_id") == attempt_id]
    assert intake, "web names it"
    assert done, "the worker that executed it names it"
    assert {line["trace_id"] for line in done} == {intake[-1]["trace_id"]}, "one trace from the request to the call"
    assert not any("ledger_seal" in line.get("event", "") for line in lines["clock"]), "ticks are at level DEBUG"


def test_lines_about_a_run_name_it_and_its_correlation(stack: RunningStack) -> None:
    fresh = {name: str(uuid4()) for name in ("event_id", "correlation_id", "case_id")}
    key = stack.demo["keys"]["workflows"]
    answer = get(
        f"{stack.base_url}/api/v1/events",
        method="POST",
        headers={"Authorization": f"Bearer {key}", "Content-Type": "application/json"},
        body=json.dumps(stack.demo["event_example"] | fresh).encode(),
    )
    assert answer.status == 202, answer.body
    names = [path.stem for path in (stack.home / "logs").glob("*.log") if path.stem not in ("postgres", "valkey")]

    def told() -> list[dict[str, Any]]:
        lines = [line for name in names for line in log_lines(stack, name)]
        return [line for line in lines if line.get("event") == "instance_moved"]

    wait_for(lambda: bool(told()), seconds=30, what="a line about the run")
    for line in told():
        assert {"instance_id", "correlation_id", "trace_id", "was", "state"} <= set(line), line


def state(stack: RunningStack, attempt_id: str) -> str:
    key = stack.demo["keys"]["caller"]
    answer = get(f"{stack.base_url}/api/v1/attempts/{attempt_id}", headers={"Authorization": f"Bearer {key}"})
    return str(answer.body.get("state", answer.body.get("status", "")))


def log_lines(stack: RunningStack, name: str) -> list[dict[str, Any]]:
    text = (stack.home / "logs" / f"{name}.log").read_text()
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]
