"""What `make run` promises: it comes up, survives kill -9 and outages, refuses in one line, ends cleanly."""

import os
import signal
import stat
import subprocess
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import psutil
import psycopg
import pytest

from config.embedded.paths import PROJECT
from config.lanes import LANES
from tests.stack.homes import seasoned_copy, servers_of
from tests.stack.support import (
    SUPERVISOR,
    RunningStack,
    bare_environment,
    free_port,
    get,
    kill_all,
    mentions,
    processes_of,
    wait_for,
)

pytestmark = [pytest.mark.stack, pytest.mark.timeout(180)]

SECOND_START_SECONDS = 15


@pytest.fixture
def stack(shared_stack: RunningStack) -> RunningStack:
    """The module's stack, up and ready, whatever the test before did to it."""
    if shared_stack.ended:
        shared_stack.start()
    wait_for(lambda: shared_stack.ready().status == 200, seconds=30, what="ready")
    return shared_stack


def refused(*, home: Path, port: int, variables: Mapping[str, str] | None = None) -> "subprocess.CompletedProcess[str]":
    """A `make run` that is expected to say no."""
    return subprocess.run(
        [*SUPERVISOR, "run"],
        cwd=PROJECT,
        env=bare_environment(HOLDPOINT_HOME=str(home), PORT=str(port), **(variables or {})),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


def child_pid(stack: RunningStack, name: str) -> int:
    """The main process of one child: it carries the name, which Linux cuts at 15 characters, and leads the session of
    what it forked."""
    for one in processes_of(stack.home):
        with suppress(psutil.NoSuchProcess, ProcessLookupError):  # others come and go meanwhile
            if one.name() == f"hp-{name}"[:15] and os.getsid(one.pid) == one.pid:
                return int(one.pid)
    raise AssertionError(f"{name} is not running")


def forkserver(stack: RunningStack) -> psutil.Process:
    """The process that has loaded the application, from which the children are forked."""
    web = psutil.Process(child_pid(stack, "web"))
    parent = web.parent()
    assert parent is not None
    return parent


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
    assert f'"{stack.base_url}"' in stack.manage("demo", "--json")


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


@pytest.mark.parametrize("name", ["web", "clock", "adapters", "beat", "consumer", "modules"])
def test_a_process_that_is_killed_comes_back(stack: RunningStack, name: str) -> None:
    before = child_pid(stack, name)
    said = stack.text.count(f"{name} runs again")
    os.kill(before, signal.SIGKILL)
    wait_for(lambda: stack.text.count(f"{name} runs again") > said, seconds=20, what=f"{name} again")
    assert child_pid(stack, name) != before
    wait_for(lambda: is_ready(stack), seconds=30, what="ready again")


def test_the_application_is_loaded_once_and_when_that_process_is_killed_all_come_back(stack: RunningStack) -> None:
    before = forkserver(stack)
    names = (*LANES, "beat", "consumer", "web", "modules")
    assert {psutil.Process(child_pid(stack, name)).ppid() for name in names} == {before.pid}
    said = {name: stack.text.count(f"{name} runs again") for name in names}
    os.kill(child_pid(stack, "beat"), signal.SIGSTOP)  # one that does not hear the signal to end
    before.kill()
    for name in names:
        wait_for(lambda name=name: stack.text.count(f"{name} runs again") > said[name], seconds=60, what=name)  # type: ignore[misc]
    wait_for(lambda: is_ready(stack), seconds=30, what="ready again")
    assert forkserver(stack).pid != before.pid


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


def test_a_frozen_postgresql_is_answered_for_in_time_and_recovers(stack: RunningStack) -> None:
    """Its sockets stay open and nothing comes: kept connections must not wait for ever."""
    url, headers = f"{stack.base_url}/api/v1/reason-codes", {"Authorization": "Bearer hp_unknown_key"}
    assert get(url, headers=headers).status == 401  # a thread that keeps a connection from now on
    server = psutil.Process(stack.server_pid())
    frozen = [server, *server.children()]
    try:
        for one in frozen:
            one.suspend()
        first = get(url, headers=headers)
        with ThreadPoolExecutor(3) as pool:  # after it, also those who find no connection and must make one
            later = [pool.submit(get, url, headers=headers) for _ in range(2)]
            health = pool.submit(stack.ready).result()
        answers = [first, *(one.result() for one in later)]
    finally:
        for one in frozen:
            one.resume()
    assert {answer.status for answer in answers} == {503}
    assert all(answer.content_type.startswith("application/problem+json") for answer in answers)
    assert health.body["checks"]["database"]["status"] == "failing"
    assert max(answer.seconds for answer in [*answers, health]) < 5
    wait_for(lambda: stack.ready().status == 200, seconds=10, what="recovered")


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

    began = time.monotonic()
    stack.start()
    seconds = time.monotonic() - began

    assert "before kill -9" in remembered(stack)
    assert (stack.home / "secret_key").read_text() == secret
    # How long PostgreSQL replays depends on what was written since its last checkpoint, not on us.
    assert seconds - postgres_start_seconds(stack) < SECOND_START_SECONDS


def postgres_start_seconds(stack: RunningStack) -> float:
    """From PostgreSQL's first line until it took connections, by its own log; after a crash that is its recovery."""
    lines = (stack.home / "logs" / "postgres.log").read_text().splitlines()
    ready = next(line for line in lines if "ready to accept connections" in line)
    first, last = (datetime.fromisoformat(line[:23]) for line in (lines[0], ready))
    return (last - first).total_seconds()


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
    assert time.monotonic() - began < SECOND_START_SECONDS


def test_a_signal_while_it_starts_ends_it_too(stack: RunningStack) -> None:
    stack.finish()
    stack.begin()
    wait_for(lambda: "starting workers" in stack.text, seconds=20, what="half-way")
    assert stack.finish() == 0
    assert processes_of(stack.home) == []


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        (
            {"LOG_LEVEL": "loud"},
            "Error: The application does not load: ValueError: Unable to configure root logger",
        ),
        ({}, "Error: The step `migrate` failed: django.db.utils.OperationalError: connection failed: "),
    ],
)
def test_a_start_that_fails_is_one_line_and_leaves_nothing(
    home: Path, variables: dict[str, str], expected: str
) -> None:
    nowhere = {"DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none", "REDIS_URL": "redis://127.0.0.1:1/0"}
    answer = refused(home=home, port=free_port(), variables={**nowhere, **variables})
    assert answer.returncode == 1
    assert len(answer.stderr.splitlines()) == 1
    assert answer.stderr.startswith(expected)
    assert processes_of(home) == []


def test_servers_of_the_user_are_used_and_none_is_started(seasoned_home: Path) -> None:
    with seasoned_copy(seasoned_home) as home:
        own = home.with_name("own")
        own.mkdir()
        for name in ("postgres", "valkey"):
            (home / name).rename(own / name)
        with servers_of(own) as servers:
            variables = {"DATABASE_URL": servers.database_owner_url, "REDIS_URL": servers.redis_url}
            stack = RunningStack(home=home, variables=variables)
            stack.start()
            assert not (home / "postgres").exists()
            assert not (home / "valkey").exists()
            assert stack.runtime()["database_url"] == variables["DATABASE_URL"]
            assert stack.finish() == 0
            assert [server.alive() for server in servers.embedded] == [True, True]
