"""The SDK against a running stack: its examples, the command, and a web process that is killed while it is asked."""

import io
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import psutil
import pytest
from holdpoint_client import Action, Allowed, Answer, Completed, Held, Holdpoint, RetryPolicy, SQLiteKeyStore, cli

from config.embedded.paths import PROJECT
from tests.stack.homes import seasoned_stack
from tests.stack.support import RunningStack, processes_of, wait_for, with_suppressed

pytestmark = [pytest.mark.stack, pytest.mark.timeout(240)]
EXAMPLES = PROJECT / "sdk" / "examples"


class World:
    """A running stack, its demo's keys and people, and a folder for what the examples keep."""

    def __init__(self, stack: RunningStack, folder: Path) -> None:
        self.stack, self.folder = stack, folder
        self.demo = stack.demo

    def environment(self, key: str = "caller") -> dict[str, str]:
        """Of somebody who has installed the SDK and has their keys: nothing of the project is on the path."""
        return {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(PROJECT / "sdk" / "src"),
            "HOLDPOINT_URL": self.stack.base_url,
            "HOLDPOINT_KEY": self.demo["keys"][key],
            "HOLDPOINT_EXECUTOR_KEY": self.demo["keys"]["executor"],
            "HOLDPOINT_KEY_STORE": str(self.folder / "keys.sqlite3"),
            "AGENT_MEMORY": str(self.folder),
        }

    def start(self, script: str, *arguments: str) -> "subprocess.Popen[str]":
        command = [sys.executable, str(EXAMPLES / script), *arguments]
        return subprocess.Popen(
            command, cwd=self.folder, env=self.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def run(self, script: str, *arguments: str) -> tuple[int, str]:
        process = self.start(script, *arguments)
        out, err = process.communicate(timeout=90)
        assert "Traceback" not in err, err
        return process.returncode, out

    def command(self, key: str, *arguments: str) -> tuple[int, str, str]:
        """The command in this process: starting one for each would be most of the time."""
        out, err = io.StringIO(), io.StringIO()
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
            for name, value in self.environment(key).items():
                patch.setenv(name, value)
            code = cli.main(arguments)
        return code, out.getvalue(), err.getvalue()

    def asks(self, key: str, *arguments: str) -> Any:
        code, out, err = self.command(key, *arguments, "--json")
        assert code == 0, err
        return json.loads(out)

    def client(self, **more: Any) -> Holdpoint:
        keys = self.demo["keys"]
        store = SQLiteKeyStore(self.folder / "keys.sqlite3")
        return Holdpoint(self.stack.base_url, keys["caller"], executor_key=keys["executor"], store=store, **more)

    def ask(
        self, client: Holdpoint, target: str, *, contract: str = "demo-allow", operation: str = "case.close"
    ) -> Answer:
        """Named by its target; in the mode in which executors act."""
        action = Action(operation, target_ref=target)
        return client.attempt(
            contract, action=action, ref=target, patient_context_ref=f"ctx-{target}", mode="client_driven"
        )

    def decide(self, verb: str, target: str, **vote: str) -> None:
        """As a reviewer, signed in: waits until the review for the target is in the queue."""
        with httpx.Client(base_url=self.stack.base_url, follow_redirects=True, timeout=40) as person:
            person.get("/admin/login/")
            person.headers["Referer"] = self.stack.base_url + "/admin/login/"
            token = {"csrfmiddlewaretoken": person.cookies["csrftoken"]}
            person.post("/admin/login/", data=self.demo["users"]["reviewer"] | token)
            person.headers["X-CSRFToken"] = person.cookies["csrftoken"]
            found: list[dict[str, Any]] = []

            def waits() -> bool:
                rows = person.get("/api/v1/reviews", params={"status": "requested", "page_size": 200}).json()["results"]
                found[:] = [row for row in rows if row["target_ref"] == target]
                return bool(found)

            wait_for(waits, seconds=30, what=f"a review of {target}")
            card = person.get(f"/api/v1/reviews/{found[0]['id']}").json()
            voted = person.post(
                f"/api/v1/reviews/{card['id']}/{verb}", json={"action_digest": card["action_digest"], **vote}
            )
            assert voted.status_code == 200, voted.text

    def timeline(self, attempt_id: str) -> list[str]:
        with self.client() as client:
            return [row["action"] for row in client.read(f"/attempts/{attempt_id}/timeline")]


@pytest.fixture(scope="module")
def world(seasoned_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with seasoned_stack(seasoned_home, HOLDPOINT_RESTART_DELAY="1", HOLDPOINT_MODULES="none") as running:
        yield World(running, tmp_path_factory.mktemp("sdk"))


def test_the_plain_service_sends_an_invoice_once_and_says_so_the_second_time(world: World) -> None:
    invoice = f"invoice-{uuid4().hex[:8]}"
    code, said = world.run("plain_service.py", invoice)
    assert (code, f"done: receipt-{invoice}" in said, "sending" in said) == (0, True, True)
    code, said = world.run("plain_service.py", invoice)
    assert (code, "done before" in said, "sending" in said) == (0, True, False)
    code, said = world.run("plain_service.py", invoice, "--contract", "demo-deny")
    assert (code, "policy_denied" in said, "sending" in said) == (1, True, False)


def test_the_plain_service_waits_for_a_person_and_then_acts(world: World) -> None:
    invoice = f"invoice-{uuid4().hex[:8]}"
    process = world.start("plain_service.py", invoice, "--contract", "demo-hold")
    world.decide("approve", invoice)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, f"done: receipt-{invoice}" in out) == (0, True), err
    (row,) = [row for row in world.asks("caller", "attempts", "list") if row["target_ref"] == invoice]
    assert world.timeline(row["id"])[-3:] == ["attempt.leased", "attempt.dispatched", "attempt.completed"]


DIES = """
import os
from holdpoint_client import Action, governed
action = lambda t: Action("case.close", target_ref=t)
@governed(contract="demo-allow", ref=lambda t: t, action=action, patient_context_ref=lambda t: t)
def act(t):
    print("acting", flush=True)
    os.kill(os.getpid(), 9)
import sys
act(sys.argv[1])
"""


def test_a_service_that_is_killed_while_it_acts_never_acts_again_by_itself(world: World) -> None:
    """Killed between lease and report. Until the lease runs out it is taken; then its outcome is unknown."""
    target = f"dies-{uuid4().hex[:8]}"
    command = [sys.executable, "-c", DIES, target]
    runs = [
        subprocess.run(command, env=world.environment(), capture_output=True, text=True, timeout=60, check=False)
        for _ in range(2)
    ]
    assert [(one.returncode, one.stdout) for one in runs] == [(-9, "acting\n"), (1, "")]
    assert "TakenElsewhere" in runs[1].stderr


def test_the_executor_does_what_is_released_reports_failures_and_finishes_its_work_on_sigterm(world: World) -> None:
    refs = {name: f"{name}-{uuid4().hex[:8]}" for name in ("example.fail", "example.act")}
    with world.client() as client:
        asked = {name: world.ask(client, ref, operation=name) for name, ref in refs.items()}
        process = world.start("executor.py", "--seconds-per-action", "1")
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("begin example.act"):
                break
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=30)
        assert process.returncode == 0, err
        assert f"end {refs['example.act']}" in out
        assert client.wait(asked["example.act"].attempt.id, until="end", timeout=20).state == "completed"
        failed = client.wait(asked["example.fail"].attempt.id, until="end", timeout=20)
    assert (failed.state, failed.reason_code) == ("failed-quarantined", "adapter_failed")


def test_the_celery_task_ships_once_however_often_it_is_delivered(world: World) -> None:
    order = f"order-{uuid4().hex[:8]}"
    code, said = world.run("celery_task.py", order)
    assert (code, said.count(f"shipping {order}")) == (0, 1)
    assert said.count(f"task: tracking-{order}") == 1
    assert said.count("task: shipped before") == 2


def test_the_agents_tool_interrupts_while_it_is_held_and_goes_on_where_it_was(world: World) -> None:
    thread = f"thread-{uuid4().hex[:8]}"
    assert world.run("agent_tool.py", thread)[0] == 3
    assert world.run("agent_tool.py", thread)[0] == 3  # the same tool call, the same attempt
    case = f"case-{thread}"
    world.decide("approve", case)
    code, said = world.run("agent_tool.py", thread)
    assert (code, said.splitlines()) == (0, [f"closing {case}", f"Result: {case} is closed"])


def test_the_command_shows_and_does_what_operators_need_every_day(world: World) -> None:
    target = f"cli-{uuid4().hex[:8]}"
    with world.client() as client:
        held = world.ask(client, target, contract="demo-hold")
    assert isinstance(held, Held)
    attempt = held.attempt.id
    assert world.asks("caller", "attempts", "show", attempt)["state"] == "review-required"
    assert world.asks("caller", "attempts", "explain", attempt)["obstacles"]
    assert "Held for review" in world.command("caller", "attempts", "timeline", attempt)[1] or True
    assert attempt in {
        row["attempt_id"] for row in world.asks("reviewer_service", "reviews", "list", "--status", "requested")
    }
    assert held.attempt.review is not None
    assert world.asks("reviewer_service", "reviews", "show", held.attempt.review.id)["action_digest"]
    assert world.asks("caller", "attempts", "cancel", attempt)["state"] == "preflight-denied"
    assert world.command("caller", "attempts", "cancel", attempt)[0] == 1
    assert world.asks("governance", "shutdown", "engage", "contract", "demo-deny", "--drill", "--reason", "rehearsal")[
        "drill"
    ]
    assert world.asks("governance", "shutdown", "list")
    hold = world.asks("governance", "holds", "place", "context", f"ctx-{target}", "--reason", "litigation")
    assert hold["id"] in {row["id"] for row in world.asks("governance", "holds", "list", "--state", "active")}
    assert world.command("governance", "holds", "release", hold["id"])[0] == 3
    assert isinstance(world.asks("governance", "quarantine", "list", "--resolved", "false"), list)
    code, _, err = world.command("caller", "holds", "place", "organization", "--reason", "litigation")
    assert (code, "/problems/scope-missing" in err) == (1, True)
    envelope = world.demo["event_example"] | {"event_id": str(uuid4()), "case_id": str(uuid4())}
    (world.folder / "event.json").write_text(json.dumps(envelope))
    run = world.asks("workflows", "events", "send", str(world.folder / "event.json"))["instance_id"]
    assert world.asks("workflows", "events", "send", str(world.folder / "event.json"))["instance_id"] == run
    assert world.asks("workflows", "instances", "show", run)["case_id"] == envelope["case_id"]
    for verb, status in (("halt", "halted"), ("resume", "running"), ("cancel", "cancelled")):
        code, said, err = world.command("workflows", "instances", verb, run, "--reason", "rehearsal")
        assert (code, f"is now {status}" in said) == (0, True), err
    assert world.asks("workflows", "reasons", "--scope", "intervention")


def web_processes(stack: RunningStack) -> list[psutil.Process]:
    """The main process and its workers: all carry its name."""
    return [one for one in processes_of(stack.home) if one.name() == "hp-web"]


def test_a_server_that_is_killed_while_it_is_asked_gets_every_question_once(world: World) -> None:
    """kill -9 of the web processes under a small load: every ref ends with exactly one attempt under its own key."""
    refs = [f"kill-{uuid4().hex[:8]}" for _ in range(24)]
    patient = RetryPolicy(deadline=90, most_tries=500, longest=1.0)
    began, web = threading.Event(), web_processes(world.stack)
    assert web

    def ask(ref: str) -> Answer:
        with world.client(retry=patient) as client:
            answer = world.ask(client, ref)
            began.set()
            return answer

    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(ask, ref) for ref in refs]
        assert began.wait(30)
        for process in web:
            with_suppressed(process.kill)
        under_way = [one for one in asked if not one.done()]
        answers = [one.result(timeout=120) for one in asked]
    assert under_way
    assert {type(answer) for answer in answers} == {Allowed}
    ids = sorted(answer.attempt.id for answer in answers)
    with world.client(retry=patient) as client:
        made = [row["id"] for row in client.rows("/attempts", most=400) if row["target_ref"] in refs]
        assert sorted(made) == ids
        client.complete(client.lease(answers[0].attempt.id), response_metadata={"status": 200})
        assert isinstance(world.ask(client, refs[0]), Completed)
