"""The source documents as acceptance tests: over HTTP, with the real worker, beat, PostgreSQL and Valkey.

S1 the lifecycle, S2 the failure classes, S3 the lease rules. The HTTP target counts what reaches it.
"""

import io
import subprocess
import threading
import time
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.attempts.execution.target import CountingTarget
from tests.stack.homes import seasoned_stack
from tests.stack.support import RunningStack

pytestmark = [pytest.mark.stack, pytest.mark.timeout(180)]


class World:
    """A running stack, its demo, and the people and programs that use it."""

    def __init__(self, stack: RunningStack, target: CountingTarget) -> None:
        self.stack, self.target, self.count = stack, target, 0
        self.people: dict[str, httpx.Client] = {}
        self.demo = stack.demo

    def call(self, method: str, path: str, key: str, body: Any = None, **headers: str) -> httpx.Response:
        headers["Authorization"] = f"Bearer {self.demo['keys'][key]}"
        return httpx.request(method, f"{self.stack.base_url}/api/v1{path}", headers=headers, json=body, timeout=40)

    def ask(self, contract: str, *, key: str = "", **changes: Any) -> httpx.Response:
        self.count += 1
        route = self.demo["contracts"][contract]
        path = f"/execution/{route['slug']}/{route['version']}/attempts"
        key = key or f"acceptance-{contract}-{self.count:04d}"
        return self.call("POST", path, "caller", self.demo["attempt_example"] | changes, **{"Idempotency-Key": key})

    def person(self, name: str) -> httpx.Client:
        """Signed in through the console's own form."""
        if name not in self.people:
            self.people[name] = self._sign_in(name)
        return self.people[name]

    def _sign_in(self, name: str) -> httpx.Client:
        client = httpx.Client(base_url=self.stack.base_url, follow_redirects=True, timeout=40)
        client.get("/admin/login/")
        client.headers["Referer"] = self.stack.base_url + "/admin/login/"
        token = {"csrfmiddlewaretoken": client.cookies["csrftoken"]}
        client.post("/admin/login/", data=self.demo["users"][name] | token)
        client.headers["X-CSRFToken"] = client.cookies["csrftoken"]
        return client

    def attempt(self, attempt_id: str) -> dict[str, Any]:
        return dict(self.call("GET", f"/attempts/{attempt_id}", "caller").json())

    def until(self, attempt_id: str, *states: str, seconds: float = 30) -> dict[str, Any]:
        deadline = time.monotonic() + seconds
        while (found := self.attempt(attempt_id))["state"] not in states:
            assert time.monotonic() < deadline, found
            time.sleep(0.2)
        return found

    def actions(self, attempt_id: str) -> list[str]:
        rows = self.call("GET", f"/attempts/{attempt_id}/timeline", "caller").json()
        return [row["action"] for row in rows]


@pytest.fixture(scope="module")
def world(seasoned_home: Path) -> Iterator[World]:
    target = CountingTarget()
    with seasoned_stack(seasoned_home, HOLDPOINT_DEMO_TARGET=target.url) as stack:
        found = World(stack, target)
        yield found
        for client in found.people.values():
            client.close()
    target.stop()


def test_s1_a_held_attempt_is_released_by_a_person_executed_by_its_caller_and_completed(world: World) -> None:
    asked = world.ask("hold")
    assert (asked.status_code, asked.json()["state"]) == (202, "review-required")
    attempt, review = asked.json()["id"], asked.json()["review"]["id"]
    reviewer = world.person("reviewer")
    card = reviewer.get(f"/api/v1/reviews/{review}").json()
    voted = reviewer.post(f"/api/v1/reviews/{review}/approve", json={"action_digest": card["action_digest"]})
    assert voted.status_code == 200, voted.text
    lease = world.call("POST", f"/attempts/{attempt}/lease", "executor", {}).json()
    report = {"lease_token": lease["lease_token"], "response_metadata": {"status": "ok"}}
    assert world.call("POST", f"/attempts/{attempt}/complete", "executor", report).json()["state"] == "completed"
    assert world.actions(attempt) == [
        "attempt.received",
        "attempt.deduplicated",
        "attempt.held",
        "review.voted",
        "review.approved",
        "attempt.approved",
        "attempt.decided",
        "attempt.leased",
        "attempt.dispatched",
        "attempt.completed",
    ]


def test_s1_a_rejected_attempt_ends_before_anything_ran(world: World) -> None:
    asked = world.ask("hold").json()
    reviewer = world.person("reviewer2")
    vote = {"action_digest": asked["action_digest"], "reason_code": "reviewer_wrong_target"}
    assert reviewer.post(f"/api/v1/reviews/{asked['review']['id']}/reject", json=vote).status_code == 200
    ended = world.attempt(asked["id"])
    assert (ended["state"], ended["reason_code"]) == ("preflight-denied", "review_rejected")
    assert world.call("POST", f"/attempts/{asked['id']}/lease", "executor", {}).status_code == 409


def test_s1_two_people_means_two_different_people(world: World) -> None:
    asked = world.ask("two_person").json()
    path, vote = f"/api/v1/reviews/{asked['review']['id']}/approve", {"action_digest": asked["action_digest"]}
    first = world.person("reviewer")
    assert first.post(path, json=vote).status_code == 200
    assert first.post(path, json=vote).status_code == 409
    assert world.attempt(asked["id"])["state"] == "review-required"
    assert world.person("reviewer2").post(path, json=vote).status_code == 200
    assert world.attempt(asked["id"])["state"] == "approved-for-execution"


def test_s1_closed_and_denied_contracts_execute_nothing(world: World) -> None:
    before = len(world.target.requests)
    assert world.ask("closed").json()["reason_code"] == "attempt_creation_disabled"
    assert world.ask("deny").json()["reason_code"] == "policy_denied"
    assert len(world.target.requests) == before


def test_s2_an_unreadable_request_is_blocked_and_one_refusal_is_on_the_ledger(world: World) -> None:
    def refusals() -> int:
        found = world.call("GET", "/ledger/entries?action=attempt.refused&page_size=200", "ledger").json()
        return len(found["results"])

    before = refusals()
    assert world.ask("allow", action={"operation": 3}).json()["reason_code"] == "invalid_input"
    assert refusals() == before + 1


def test_s2_a_failing_adapter_is_recorded_and_never_called_again_for_effect_once(world: World) -> None:
    world.target.statuses = [500]
    before = len(world.target.requests)
    ended = world.until(world.ask("once_http").json()["id"], "failed-quarantined")
    time.sleep(3)
    assert len(world.target.requests) == before + 1
    assert ended["reason_code"] == "adapter_failed"
    cases = world.person("operator").get("/api/v1/quarantine-cases?resolved=false").json()["results"]
    assert ended["id"] in {case["attempt_id"] for case in cases}


def test_s2_a_caller_who_asks_again_in_a_timeline_contract_makes_a_new_execution(world: World) -> None:
    answers = [world.ask("timeline", key="acceptance-timeline").json() for _ in range(2)]
    assert answers[0]["id"] != answers[1]["id"]
    assert answers[0]["decision_id"] != answers[1]["decision_id"]


def test_s3_a_retryable_failure_is_retried_with_the_same_key_where_the_effect_proves_it_safe(world: World) -> None:
    world.target.statuses = [503]
    before = len(world.target.requests)
    world.until(world.ask("idempotent_http").json()["id"], "completed", seconds=40)
    sent = world.target.requests[before:]
    assert len(sent) == 2
    assert len({request["key"] for request in sent}) == 1
    assert world.target.effects[sent[0]["key"]] == 1


def test_s3_a_message_that_is_delivered_again_executes_nothing_again(world: World) -> None:
    before = len(world.target.requests)
    done = world.until(world.ask("once_http").json()["id"], "completed")
    code = (
        "from celery import current_app\n"
        f"[current_app.send_task('attempts.tasks.execution.attempt_dispatch', args=['{done['id']}']) for _ in range(5)]"
    )
    world.stack.manage("shell", "-c", code)
    time.sleep(3)
    assert len(world.target.requests) == before + 1


def test_s3_only_one_executor_holds_the_lease_and_a_stale_token_is_refused(world: World) -> None:
    attempt = world.ask("allow", runtime_mode="client_driven").json()["id"]
    lease = world.call("POST", f"/attempts/{attempt}/lease", "executor", {})
    assert lease.status_code == 200, lease.text
    assert world.call("POST", f"/attempts/{attempt}/lease", "executor", {}).status_code == 409
    token = lease.json()["lease_token"]
    beat = world.call("POST", f"/attempts/{attempt}/heartbeat", "executor", {"lease_token": token})
    assert beat.status_code == 200
    forged = {"lease_token": token[:-4] + "AAAA", "response_metadata": {}}
    assert world.call("POST", f"/attempts/{attempt}/complete", "executor", forged).status_code == 409
    real = {"lease_token": token, "response_metadata": {}}
    assert world.call("POST", f"/attempts/{attempt}/complete", "executor", real).json()["state"] == "completed"


def test_waiting_answers_as_soon_as_a_person_decides(world: World) -> None:
    asked = world.ask("hold").json()
    reviewer = world.person("reviewer")
    vote = {"action_digest": asked["action_digest"], "reason_code": "reviewer_wrong_target"}
    began = time.monotonic()
    with httpx.Client() as waiting:
        timer = threading.Timer(
            1.0, lambda: reviewer.post(f"/api/v1/reviews/{asked['review']['id']}/reject", json=vote)
        )
        timer.start()
        key = world.demo["keys"]["caller"]
        url = f"{world.stack.base_url}/api/v1/attempts/{asked['id']}"
        answer = waiting.get(url, headers={"Authorization": f"Bearer {key}", "Prefer": "wait=20"}, timeout=40)
        timer.join()
    assert answer.json()["state"] == "preflight-denied"
    assert time.monotonic() - began < 15


def verified(folder: Path, data: bytes, key: str) -> "subprocess.CompletedProcess[str]":
    """By the verifier out of the bundle itself, in a fresh venv that has `cryptography` and nothing else."""
    import cffi
    import cryptography

    python = folder / "venv" / "bin" / "python"
    if not python.exists():
        venv.create(folder / "venv", with_pip=False, symlinks=True)
        (site,) = (folder / "venv" / "lib").glob("python*/site-packages")
        packages = Path(cryptography.__file__).parent, Path(cffi.__file__).parent
        for found in [*packages, *packages[0].parent.glob("_cffi_backend*")]:
            (site / found.name).symlink_to(found)
    (folder / "bundle.zip").write_bytes(data)
    with zipfile.ZipFile(io.BytesIO(data)) as opened:
        (folder / "verify.py").write_bytes(opened.read("verify.py"))
    command = [str(python), "-I", str(folder / "verify.py"), str(folder / "bundle.zip"), "--public-key", key]
    return subprocess.run(command, cwd=folder, env={}, capture_output=True, text=True, timeout=60, check=False)


def evidence(world: World, path: str, key: str) -> bytes:
    asked = world.call("POST", f"{path}/evidence", key)
    assert asked.status_code in {200, 202}, asked.text  # 200: it was made by itself when the run ended
    deadline = time.monotonic() + 60
    while (found := world.call("GET", f"{path}/evidence", key).json())["state"] != "ready":
        assert time.monotonic() < deadline, found
        assert found["state"] != "failed", found
        time.sleep(0.3)
    return world.call("GET", f"{path}/evidence", key, Accept="application/zip").content


def test_evidence_of_the_demo_verifies_offline_in_a_venv_with_the_verifier_alone(world: World, tmp_path: Path) -> None:
    attempt = world.ask("allow").json()["id"]
    envelope = world.demo["event_example"] | {"event_id": str(uuid4()), "case_id": str(uuid4())}
    assert world.call("POST", "/events", "workflows", envelope).status_code == 202
    run = world.call("GET", f"/workflow-instances?case_id={envelope['case_id']}", "workflows").json()["results"][0][
        "id"
    ]
    key = world.call("GET", "/ledger/public-key", "ledger").json()["keys"][0]["verifier_key"]
    for path, name in ((f"/attempts/{attempt}", "caller"), (f"/workflow-instances/{run}", "workflows")):
        data = evidence(world, path, name)
        said = verified(tmp_path, data, key)
        assert (said.returncode, said.stdout[:10]) == (0, "authentic:"), said.stdout + said.stderr
    changed = bytearray(data)
    changed[len(data) // 3] ^= 4
    folder = tmp_path / "bundle.zip"
    folder.write_bytes(changed)
    again = [str(tmp_path / "venv" / "bin" / "python"), "-I", str(tmp_path / "verify.py"), str(folder)]
    assert subprocess.run(again, env={}, capture_output=True, check=False).returncode == 1
