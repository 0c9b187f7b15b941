"""What `make run` promises: it comes up, survives kill -9 and outages, refuses in one line, ends cleanly."""

import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import psutil
import psycopg
import pytest

from config.embedded.paths import PROJECT, StackPaths
from config.embedded.postgres import PostgresServer
from config.embedded.postgres_cluster import OWNER_ROLE
from config.embedded.valkey import ValkeyServer
from tests.stack.support import (
    SUPERVISOR,
    RunningStack,
    bare_environment,
    get,
    kill_all,
    mentions,
    processes_of,
    wait_for,
)

pytestmark = [pytest.mark.stack, pytest.mark.timeout(180)]

SECOND_START_SECONDS = 15
STARTS_OF_DJANGO = 12


def second_start_limit() -> float:
    """Fifteen seconds, or what twelve bare starts of Django take now (six processes load it, on two cores): on a slow
    or shared machine a time alone says nothing, so it is compared with a reference of the same moment."""
    began = time.monotonic()
    environment = bare_environment(DJANGO_SETTINGS_MODULE="config.settings.test")
    subprocess.run(
        [sys.executable, "manage.py", "check"], cwd=PROJECT, env=environment, check=True, capture_output=True
    )
    return max(SECOND_START_SECONDS, STARTS_OF_DJANGO * (time.monotonic() - began))


@pytest.fixture
def stack(shared_stack: RunningStack) -> RunningStack:
    """The module's stack, up and ready, whatever the test before did to it."""
    if shared_stack.ended:
        shared_stack.start()
    wait_for(lambda: shared_stack.ready().status == 200, seconds=30, what="ready")
    return shared_stack


def refused(*, home: Path, port: int) -> "subprocess.CompletedProcess[str]":
    """A `make run` that is expected to say no at once."""
    return subprocess.run(
        [*SUPERVISOR, "run"],
        cwd=PROJECT,
        env=bare_environment(HOLDPOINT_HOME=str(home), PORT=str(port)),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


def child_pid(stack: RunningStack, name: str) -> int:
    """The main process of one child: the supervisor's own child that carries its name."""
    assert stack.process is not None
    found = psutil.Process(stack.process.pid).children()
    return next(int(one.pid) for one in found if one.environ().get("HOLDPOINT_CHILD") == name)


def remember(stack: RunningStack, word: str) -> None:
    with psycopg.connect(stack.runtime()["database_owner_url"]) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS stack_test_memory (word text)")
        connection.execute("INSERT INTO stack_test_memory VALUES (%s)", [word])


def remembered(stack: RunningStack) -> set[str]:
    with psycopg.connect(stack.runtime()["database_owner_url"]) as connection:
        return {word for (word,) in connection.execute("SELECT word FROM stack_test_memory")}


def test_it_comes_up_and_prints_address_and_logins(stack: RunningStack) -> None:
    assert stack.ready().status == 200
    for expected in (f"{stack.base_url}/", "/admin/", "/api/docs/", "Logins", str(stack.home / "logs")):
        assert expected in stack.text
    runtime = stack.home / "run" / "runtime.json"
    assert stat.S_IMODE(runtime.stat().st_mode) == 0o600
    assert stack.runtime()["base_url"] == stack.base_url
    assert stack.runtime()["database_url"] != stack.runtime()["database_owner_url"]


def test_commands_in_another_terminal_find_the_running_servers(stack: RunningStack) -> None:
    found = subprocess.run(
        [sys.executable, "manage.py", "demo", "--json"],
        cwd=PROJECT,
        env=bare_environment(HOLDPOINT_HOME=str(stack.home), PORT=str(stack.port)),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    assert f'"{stack.base_url}"' in found.stdout


def test_a_second_start_from_the_same_folder_is_refused_in_one_line(stack: RunningStack) -> None:
    answer = refused(home=stack.home, port=stack.port)
    assert answer.returncode == 1
    assert stack.process is not None
    expected = f"Error: Holdpoint already runs from {stack.home} (pid {stack.process.pid}, {stack.base_url}/)."
    assert (answer.stdout + answer.stderr).splitlines() == [expected]
    assert stack.ready().status == 200


def test_a_busy_port_is_one_line_and_nothing_is_started(stack: RunningStack, home: Path) -> None:
    answer = refused(home=home, port=stack.port)
    assert answer.returncode == 1
    expected = f"Error: Port {stack.port} on 127.0.0.1 is busy; choose another: PORT={stack.port + 1} make run"
    assert (answer.stdout + answer.stderr).splitlines() == [expected]
    assert not (home / "postgres").exists()
    assert processes_of(home) == []


@pytest.mark.parametrize("name", ["web", "worker", "beat"])
def test_a_process_that_is_killed_comes_back(stack: RunningStack, name: str) -> None:
    before = child_pid(stack, name)
    said = stack.text.count(f"{name} runs again")
    os.kill(before, signal.SIGKILL)
    wait_for(lambda: stack.text.count(f"{name} runs again") > said, seconds=20, what=f"{name} again")
    assert child_pid(stack, name) != before
    wait_for(lambda: is_ready(stack), seconds=30, what="ready again")


def is_ready(stack: RunningStack) -> bool:
    try:
        return stack.ready().status == 200
    except OSError:
        return False


def test_without_postgresql_it_says_so_and_recovers_by_itself(stack: RunningStack) -> None:
    os.kill(stack.server_pid(), signal.SIGINT)  # what `pg_ctl stop -m fast` does
    wait_for(lambda: stack.ready().status == 503, seconds=5, what="not ready")

    health = stack.ready()
    assert health.status == 503
    assert health.body["checks"]["database"]["status"] != "ok"
    answer = get(f"{stack.base_url}/api/v1/reason-codes", headers={"Authorization": "Bearer hp_unknown_key"})
    assert answer.status == 503
    assert answer.content_type.startswith("application/problem+json")
    assert answer.seconds < 5

    wait_for(lambda: stack.ready().status == 200, seconds=30, what="recovered")


def test_a_killed_postgresql_comes_back_with_its_data(stack: RunningStack) -> None:
    remember(stack, "before the crash")
    before = stack.server_pid()
    os.kill(before, signal.SIGKILL)
    wait_for(lambda: stack.server_pid() != before, seconds=20, what="a new server")
    wait_for(lambda: stack.ready().status == 200, seconds=30, what="ready again")
    assert "before the crash" in remembered(stack)


def test_kill_9_of_every_process_loses_nothing(stack: RunningStack) -> None:
    remember(stack, "before kill -9")
    secret = (stack.home / "secret_key").read_text()
    kill_all(stack.home)
    assert stack.process is not None
    stack.process.wait(timeout=5)

    stack.start()

    assert "before kill -9" in remembered(stack)
    assert (stack.home / "secret_key").read_text() == secret


def test_kill_9_of_the_supervisor_alone_leaves_nothing_in_the_way(stack: RunningStack) -> None:
    remember(stack, "before the supervisor went")
    server = stack.server_pid()
    assert stack.finish(signal.SIGKILL) == -signal.SIGKILL
    assert psutil.pid_exists(server), "PostgreSQL outlives its supervisor"

    stack.start()

    assert not mentions_home(server, stack)
    assert "before the supervisor went" in remembered(stack)


def mentions_home(pid: int, stack: RunningStack) -> bool:
    return psutil.pid_exists(pid) and mentions(psutil.Process(pid), str(stack.home))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_every_process_and_the_next_start_is_quick(stack: RunningStack, number: int) -> None:
    began = time.monotonic()
    assert stack.finish(number) == 0
    assert time.monotonic() - began < 12
    assert processes_of(stack.home) == []
    assert not (stack.home / "run" / "runtime.json").exists()
    assert stack.text.endswith("Stopped.\n")

    began = time.monotonic()
    stack.start()
    assert time.monotonic() - began < second_start_limit()


def test_a_signal_while_it_starts_ends_it_too(stack: RunningStack) -> None:
    stack.finish()
    stack.begin()
    wait_for(lambda: "starting worker" in stack.text, seconds=20, what="half-way")
    assert stack.finish() == 0
    assert processes_of(stack.home) == []


def test_servers_of_the_user_are_used_and_none_is_started(home: Path) -> None:
    own = StackPaths.from_setting(value=str(home / "own"))
    postgres, valkey = PostgresServer(paths=own), ValkeyServer(paths=own)
    postgres.start()
    valkey.start()
    variables = {"DATABASE_URL": postgres.url(role=OWNER_ROLE), "REDIS_URL": valkey.url()}
    stack = RunningStack(home=home / "stack", variables=variables)
    try:
        stack.start()
        assert not (stack.home / "postgres").exists()
        assert not (stack.home / "valkey").exists()
        assert stack.runtime()["database_url"] == variables["DATABASE_URL"]
        assert stack.finish() == 0
        assert postgres.alive()
        assert valkey.alive()
    finally:
        valkey.stop()
        postgres.stop()
